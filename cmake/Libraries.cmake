# Everything Orla takes from outside, all of it packaged by Debian 12 (see tools/packages.txt).

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
find_package(spdlog REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(GTest REQUIRED CONFIG)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)

# Header only, compiled into the one file that reads TOML.
find_path(ORLA_TOML_INCLUDE toml++/toml.h REQUIRED)
add_library(orla_tomlplusplus INTERFACE)
target_compile_definitions(orla_tomlplusplus INTERFACE TOML_HEADER_ONLY=1 TOML_EXCEPTIONS=0)

find_path(ORLA_FAST_FLOAT_INCLUDE fast_float/fast_float.h REQUIRED)

# proto/*.proto -> orla_proto, the generated code and gRPC itself. Only the room link may link it.
file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/*.proto)
if(protos)
  pkg_check_modules(grpcpp REQUIRED IMPORTED_TARGET grpc++)
  pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf)
  find_program(ORLA_PROTOC protoc REQUIRED)
  find_program(ORLA_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
  set(proto_dir ${CMAKE_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${proto_dir})
  set(proto_sources)
  foreach(proto ${protos})
    get_filename_component(name ${proto} NAME_WE)
    set(outputs ${proto_dir}/${name}.pb.cc ${proto_dir}/${name}.pb.h
                ${proto_dir}/${name}.grpc.pb.cc ${proto_dir}/${name}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${ORLA_PROTOC} -I${CMAKE_SOURCE_DIR}/proto --cpp_out=${proto_dir} --grpc_out=${proto_dir}
              --plugin=protoc-gen-grpc=${ORLA_GRPC_PLUGIN} ${name}.proto
      DEPENDS ${protos}
      COMMENT "Generating ${name}.pb.cc and ${name}.grpc.pb.cc"
      VERBATIM)
    list(APPEND proto_sources ${outputs})
  endforeach()
  add_library(orla_proto STATIC ${proto_sources})
  target_include_directories(orla_proto SYSTEM PUBLIC ${proto_dir})
  target_compile_options(orla_proto PRIVATE -w)
  target_link_libraries(orla_proto PUBLIC PkgConfig::grpcpp PkgConfig::protobuf Threads::Threads)
endif()

# The version and the commit, in one small library of its own: a new commit recompiles one file.
add_custom_target(orla_version_source
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/version.cc -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/version.cc
  COMMENT "Looking at the version"
  VERBATIM)
add_library(orla_version STATIC ${CMAKE_BINARY_DIR}/generated/version.cc)
target_include_directories(orla_version PRIVATE ${CMAKE_SOURCE_DIR}/src)
add_dependencies(orla_version orla_version_source)
