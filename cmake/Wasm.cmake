# WebAssembly: the library that runs it, and modules out of C and C++.

# tools/install.sh keeps the library in the user's cache; a link to it stands where the programs of this build look (see
# function/wasm_api.h). ORLA_WASMTIME names another file.
file(STRINGS ${CMAKE_SOURCE_DIR}/tools/wasmtime.txt pinned REGEX "^wasmtime==")
string(REGEX REPLACE "^wasmtime==([0-9.]+).*" "\\1" ORLA_WASMTIME_VERSION "${pinned}")
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(cache $ENV{XDG_CACHE_HOME})
else()
  set(cache $ENV{HOME}/.cache)
endif()
set(ORLA_WASMTIME ${cache}/orla/wasmtime-${ORLA_WASMTIME_VERSION}-${CMAKE_SYSTEM_PROCESSOR}/libwasmtime.so CACHE FILEPATH
    "wasmtime's library, as ./up fetches it")
if(NOT EXISTS ${ORLA_WASMTIME})
  message(WARNING "There is no ${ORLA_WASMTIME}: WebAssembly functions will not run, and their tests fail. ./up --build fetches it.")
endif()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
file(CREATE_LINK ${ORLA_WASMTIME} ${CMAKE_BINARY_DIR}/lib/libwasmtime.so SYMBOLIC)

find_program(ORLA_WASM_CC clang-14)
find_program(ORLA_WASM_CXX clang++-14)
set(ORLA_FUNCTIONS_DIR ${CMAKE_BINARY_DIR}/functions)
file(MAKE_DIRECTORY ${ORLA_FUNCTIONS_DIR})
# Every module of the build.
add_custom_target(wasm_modules)

# orla_wasm_module(NAME [HANDLER] SOURCES <files> [DEPENDS <files>] [OPTIONS <compiler options>]):
# builds functions/NAME.wasm in the build folder, target wasm_NAME. HANDLER: it exports orla_handle, else it has a main().
# functions/sdk is in the include path.
function(orla_wasm_module name)
  cmake_parse_arguments(arg "HANDLER" "" "SOURCES;DEPENDS;OPTIONS" ${ARGN})
  if(NOT ORLA_WASM_CC OR NOT ORLA_WASM_CXX)
    message(WARNING "No clang-14: ${name}.wasm is not built (see tools/packages.txt)")
    return()
  endif()
  set(output ${ORLA_FUNCTIONS_DIR}/${name}.wasm)
  set(common --target=wasm32-wasi -O3 -Wall -Wextra -I${CMAKE_SOURCE_DIR}/functions/sdk ${arg_OPTIONS})
  set(objects)
  set(linker ${ORLA_WASM_CC})
  foreach(source ${arg_SOURCES})
    get_filename_component(absolute ${source} ABSOLUTE)
    string(MAKE_C_IDENTIFIER ${source} stem)
    set(object ${ORLA_FUNCTIONS_DIR}/${name}.dir/${stem}.o)
    if(source MATCHES "\\.(cc|cpp|cxx)$")
      set(compiler ${ORLA_WASM_CXX} -std=gnu++20 -fno-exceptions -fno-rtti)
      set(linker ${ORLA_WASM_CXX})
    else()
      set(compiler ${ORLA_WASM_CC} -std=gnu11)
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${ORLA_FUNCTIONS_DIR}/${name}.dir
      COMMAND ${compiler} ${common} -MD -MF ${object}.d -c ${absolute} -o ${object}
      DEPENDS ${absolute} ${arg_DEPENDS}
      DEPFILE ${object}.d
      COMMENT "Compiling ${source} to WebAssembly"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(link --target=wasm32-wasi -O3 -Wl,--strip-debug)
  if(arg_HANDLER)
    list(APPEND link -mexec-model=reactor)
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${linker} ${link} ${objects} -o ${output}
    DEPENDS ${objects}
    COMMENT "Linking functions/${name}.wasm"
    VERBATIM)
  add_custom_target(wasm_${name} DEPENDS ${output})
  add_dependencies(wasm_modules wasm_${name})
endfunction()
