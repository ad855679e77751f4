# The few functions that every CMakeLists.txt of the project is written with.
#
#   ingot_library(NAME SOURCES... [DEPS ...])          static library
#   ingot_executable(NAME SOURCES... [DEPS ...])       program in bin/
#   ingot_test(NAME SOURCES... [DEPS ...] [LABELS ...] [DATA ...])
#                                                      GoogleTest program
#
# Headers are included by their path from the root of the tree.

function(ingot_library NAME)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${NAME} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${NAME} PUBLIC ${ARG_DEPS})
endfunction()

function(ingot_executable NAME)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
endfunction()

# Tests run from any folder; INGOT_SOURCE_DIR, INGOT_SHARED_DIR (test data that
# is not part of the tree; may be absent) and INGOT_BIN_DIR are defined for them.
function(ingot_test NAME)
  if(NOT INGOT_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${NAME} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${NAME} PRIVATE
    INGOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    INGOT_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared"
    INGOT_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(${NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test-bin")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
