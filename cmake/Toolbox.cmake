# Compiler, linker, cache and sanitizer settings.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

set(ORLA_SANITIZER "" CACHE STRING "address (with undefined), thread, fuzz, or empty")
set_property(CACHE ORLA_SANITIZER PROPERTY STRINGS "" address thread fuzz)
option(ORLA_WERROR "Treat warnings as errors" ON)

# Objects are found again from another clone and another build folder: paths below the source are relative to ccache.
find_program(ORLA_CCACHE ccache)
if(ORLA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ORLA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# A linker several times faster than the default one, when there is one.
find_program(ORLA_MOLD mold)
find_program(ORLA_LLD ld.lld)
if(ORLA_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(ORLA_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# Warnings go to the rooms and apps, not to generated code.
add_library(orla_warnings INTERFACE)
target_compile_options(orla_warnings INTERFACE -Wall -Wextra $<$<BOOL:${ORLA_WERROR}>:-Werror>)

# Warnings of GCC 12 that need data flow are false alarms as soon as it optimises std::variant, std::optional or strings
# (its bugs 80635 and 105651); the debug build, which does not optimise, keeps them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (NOT CMAKE_BUILD_TYPE STREQUAL "Debug" OR ORLA_SANITIZER))
  target_compile_options(orla_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
                                                 -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# Relative paths in messages, assertions and debug information: the same object in every clone, so ccache shares it.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(ORLA_SANITIZER STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(ORLA_SANITIZER STREQUAL "thread")
  set(sanitize -fsanitize=thread)
  add_compile_options(-Wno-tsan)  # Boost.Asio has stand-alone fences, of which GCC warns
  add_compile_definitions(ORLA_TSAN=1)
elseif(ORLA_SANITIZER STREQUAL "fuzz")
  set(sanitize -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
elseif(ORLA_SANITIZER)
  message(FATAL_ERROR "ORLA_SANITIZER is \"${ORLA_SANITIZER}\"; expected address, thread, fuzz or nothing")
endif()
if(ORLA_SANITIZER)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
endif()

# The code of the tests themselves is compiled once and run for a moment: not optimised, it compiles in half the time.
set(ORLA_TEST_OPTIONS)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" OR ORLA_SANITIZER)
  set(ORLA_TEST_OPTIONS -O0)
endif()
