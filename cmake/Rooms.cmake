# How a folder becomes targets. A room, app or test folder that does not exist yet is skipped.

# Every unit test binary of the preset.
add_custom_target(unit_tests)

# orla_room(NAME [THREADS] USES <public libraries> PRIVATE <hidden libraries>): library, unit tests and fuzzers of
# src/NAME. Rooms that share state between threads say THREADS: ThreadSanitizer runs their tests only.
function(orla_room room)
  cmake_parse_arguments(arg "THREADS" "" "USES;PRIVATE" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${room})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  file(GLOB headers CONFIGURE_DEPENDS ${dir}/*.h)
  if(NOT sources AND NOT headers AND NOT tests)
    return()
  endif()

  set(library orla_${room})
  orla_existing(uses ${arg_USES})
  orla_existing(private ${arg_PRIVATE})
  if(sources)
    add_library(${library} STATIC ${sources})
    target_include_directories(${library} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${library} PUBLIC ${uses} PRIVATE ${private} orla_warnings)
  else()
    add_library(${library} INTERFACE)
    target_include_directories(${library} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${library} INTERFACE ${uses})
  endif()

  if(ORLA_SANITIZER STREQUAL "fuzz")
    if(sources)
      set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    foreach(source ${fuzzers})
      get_filename_component(name ${source} NAME_WE)
      add_executable(${name} ${source})
      target_link_libraries(${name} PRIVATE ${library} ${private} orla_warnings)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endforeach()
  elseif(tests AND (arg_THREADS OR NOT ORLA_SANITIZER STREQUAL "thread"))
    add_executable(${room}_test ${tests})
    target_link_libraries(${room}_test PRIVATE ${library} ${private} GTest::gtest_main GTest::gmock orla_warnings)
    target_compile_options(${room}_test PRIVATE ${ORLA_TEST_OPTIONS})
    add_dependencies(unit_tests ${room}_test)
    orla_ctest(${room} ${room}_test 300)
  endif()
endfunction()

# orla_embed_text(TARGET FILE HEADER NAME): the text of FILE as NAME, which HEADER declares (see EmbedText.cmake).
function(orla_embed_text target file header name)
  get_filename_component(stem ${file} NAME_WE)
  set(output ${CMAKE_BINARY_DIR}/generated/${stem}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_SOURCE_DIR}/${file} -DOUTPUT=${output} -DHEADER=${header} -DNAME=${name}
            -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# Keeps of a list of targets those that exist: a room may come later than those that use it.
function(orla_existing out)
  set(found)
  foreach(library ${ARGN})
    if(NOT library MATCHES "^orla_" OR TARGET ${library})
      list(APPEND found ${library})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# One ctest per test binary, run from the source folder so that tests/data/... is found.
function(orla_ctest name target timeout_s)
  add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(environment
    ORLA_SOURCE_DIR=${CMAKE_SOURCE_DIR}
    ORLA_BINARY=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/orla
    TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tools/tsan.supp:halt_on_error=1
    LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tools/lsan.supp:print_suppressions=0
    UBSAN_OPTIONS=print_stacktrace=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout_s} ENVIRONMENT "${environment}")
endfunction()

# Programs and behaviour tests are built where they can run: not for libFuzzer, and not for ThreadSanitizer, since real
# processes speak gRPC and Debian's is not instrumented.
function(orla_runs_programs out)
  if(ORLA_SANITIZER STREQUAL "fuzz" OR ORLA_SANITIZER STREQUAL "thread")
    set(${out} OFF PARENT_SCOPE)
  else()
    set(${out} ON PARENT_SCOPE)
  endif()
endfunction()

# orla_app(NAME USES <libraries>): the program apps/NAME.
function(orla_app app)
  cmake_parse_arguments(arg "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/${app}/*.cc)
  orla_runs_programs(runs)
  if(NOT sources OR NOT runs)
    return()
  endif()
  orla_existing(uses ${arg_USES})
  add_executable(${app} ${sources})
  target_include_directories(${app} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/apps)
  target_link_libraries(${app} PRIVATE ${uses} orla_warnings)
endfunction()

# Behaviour across rooms and of the built program, which the tests find through ORLA_BINARY.
function(orla_behaviour_tests)
  cmake_parse_arguments(arg "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cc)
  orla_runs_programs(runs)
  if(NOT sources OR NOT runs)
    return()
  endif()
  orla_existing(uses ${arg_USES})
  file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*.cc)
  add_executable(behaviour_test ${support})
  target_include_directories(behaviour_test PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(behaviour_test PRIVATE ${uses} GTest::gtest_main GTest::gmock orla_warnings)
  target_compile_options(behaviour_test PRIVATE ${ORLA_TEST_OPTIONS})
  if(TARGET orla)
    add_dependencies(behaviour_test orla)
  endif()
  # They wait more than they work, and each fleet has ports of its own: shards run side by side. The examples have ports
  # that people know, so they run one after the other. COST: ctest starts the longest first.
  set(shards 4)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    orla_ctest(behaviour_${shard} behaviour_test 600)
    set_property(TEST behaviour_${shard} APPEND PROPERTY ENVIRONMENT GTEST_FILTER=-All/Examples.*
                 GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${index})
    set_tests_properties(behaviour_${shard} PROPERTIES LABELS program COST 1000)
  endforeach()
  orla_ctest(behaviour_examples behaviour_test 600)
  set_property(TEST behaviour_examples APPEND PROPERTY ENVIRONMENT GTEST_FILTER=All/Examples.*)
  set_tests_properties(behaviour_examples PROPERTIES LABELS program)
endfunction()

# tests/chaos: fleets of real processes that are killed, frozen, cut off and short of room. tests/<tool>/*.cc are programs
# that these tests start.
function(orla_chaos_tests)
  cmake_parse_arguments(arg "" "" "USES;TOOLS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/chaos/*.cc)
  orla_runs_programs(runs)
  if(NOT sources OR NOT runs)
    return()
  endif()
  orla_existing(uses ${arg_USES})
  add_executable(chaos_test ${sources} ${CMAKE_SOURCE_DIR}/tests/fleet_under_test.cc
                            ${CMAKE_SOURCE_DIR}/tests/gateway_under_test.cc ${CMAKE_SOURCE_DIR}/tests/push_client.cc)
  target_include_directories(chaos_test PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(chaos_test PRIVATE ${uses} GTest::gtest_main GTest::gmock orla_warnings)
  target_compile_options(chaos_test PRIVATE ${ORLA_TEST_OPTIONS})
  if(TARGET orla)
    add_dependencies(chaos_test orla)
  endif()
  foreach(tool ${arg_TOOLS})
    file(GLOB tool_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${tool}/*.cc)
    add_executable(${tool} ${tool_sources})
    target_include_directories(${tool} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
    target_link_libraries(${tool} PRIVATE ${uses} orla_warnings)
    add_dependencies(chaos_test ${tool})
  endforeach()
  orla_ctest(chaos chaos_test 900)
  set_tests_properties(chaos PROPERTIES RUN_SERIAL ON LABELS program)
endfunction()

# bench/<name>_bench.cc, when Google Benchmark is installed; built by name or with the target `benches`.
function(orla_benches)
  cmake_parse_arguments(arg "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cc)
  find_package(benchmark CONFIG QUIET)
  if(NOT sources OR ORLA_SANITIZER OR NOT benchmark_FOUND)
    return()
  endif()
  orla_existing(uses ${arg_USES})
  add_custom_target(benches)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE ${uses} PkgConfig::zstd fmt::fmt benchmark::benchmark_main orla_warnings)
    add_dependencies(benches ${name})
  endforeach()
endfunction()

# Target `headers`: every header compiles alone. One whose .cc includes it first (tools/tidy sees to that) is compiled
# alone there already; the others get a source of their own.
function(orla_header_checks)
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR}/src CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.h)
  set(units)
  foreach(header ${headers})
    string(REGEX REPLACE "\\.h$" "" stem ${header})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${stem}.cc)
      set(unit ${CMAKE_BINARY_DIR}/headers/${stem}_alone.cc)
      file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n#include \"${header}\"  // the guard holds\n")
      list(APPEND units ${unit})
    endif()
  endforeach()
  if(NOT units OR ORLA_SANITIZER)
    return()
  endif()
  add_library(headers OBJECT EXCLUDE_FROM_ALL ${units})
  target_include_directories(headers PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(headers PRIVATE -O0 -g0)
  orla_existing(uses orla_proto orla_node orla_sim)
  target_link_libraries(headers PRIVATE ${uses} GTest::gmock orla_warnings)
endfunction()

# The tree checks itself: tools/tidy, and a canary that tools/tidy still notices each kind of violation.
function(orla_tree_checks)
  if(ORLA_SANITIZER OR NOT EXISTS ${CMAKE_SOURCE_DIR}/tools/tidy)
    return()
  endif()
  add_test(NAME tidy COMMAND ${CMAKE_SOURCE_DIR}/tools/tidy WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME tidy_canary COMMAND ${CMAKE_SOURCE_DIR}/tools/tidy --self-test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(tidy tidy_canary PROPERTIES TIMEOUT 120)
  if(TARGET orla)
    add_test(NAME completion COMMAND ${CMAKE_SOURCE_DIR}/tests/completion.sh $<TARGET_FILE:orla>)
    set_tests_properties(completion PROPERTIES TIMEOUT 60)
  endif()
endfunction()

# Whole simulated fleets, crashed and cut at random, from seeds that are the same on every machine; fewer of them under
# a sanitizer, which is about ten times slower.
function(orla_simulator_test)
  if(NOT TARGET orla-sim)
    return()
  endif()
  set(seeds 1..1000)
  if(ORLA_SANITIZER)
    set(seeds 1..100)
  endif()
  add_test(NAME simulator COMMAND orla-sim --seeds ${seeds} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME simulator_swarm COMMAND orla-sim --seeds ${seeds} --swarm WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # Work for a core each from the start, beside those that wait.
  set_tests_properties(simulator simulator_swarm PROPERTIES TIMEOUT 600 COST 2000)
  add_dependencies(unit_tests orla-sim)
endfunction()
