# Options of the build and the flags that hold for every target.
option(INGOT_BUILD_COMPILER "Build the compiler (needs LLVM, MLIR and LLD 19)" ON)
option(INGOT_BUILD_TESTS "Build the tests" ON)
set(INGOT_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# The sanitizer presets take the release build's, which is many times faster.
set(INGOT_TEST_COMPILER "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/ingot-compiler" CACHE FILEPATH
  "The compiler of the artifacts that tests run")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -gline-tables-only -DNDEBUG")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-omit-frame-pointer
                    -ffp-contract=off)

# LLD links this tree in a fraction of a second. With g++, -fuse-ld=lld alone
# would pick whatever LLD is the system's default version.
if(EXISTS /usr/lib/llvm-19/bin/ld.lld)
  add_link_options(-fuse-ld=lld)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_link_options(-B/usr/lib/llvm-19/bin)
  endif()
endif()

if(INGOT_SANITIZE)
  add_compile_options(-fsanitize=${INGOT_SANITIZE} -fno-sanitize-recover=all -g1 -O1)
  add_link_options(-fsanitize=${INGOT_SANITIZE})
endif()

find_program(INGOT_CCACHE ccache)
if(INGOT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${INGOT_CCACHE})
endif()
