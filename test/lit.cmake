# The lit suite as one test of ctest, and the target check-lit that builds what
# it needs and runs it.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_file(INGOT_LIT lit.py
  PATHS ${LLVM_TOOLS_BINARY_DIR}/../build/utils/lit REQUIRED NO_DEFAULT_PATH)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/lit.site.cfg.py.in
  ${CMAKE_CURRENT_BINARY_DIR}/lit.site.cfg.py @ONLY)

set(INGOT_LIT_COMMAND ${Python3_EXECUTABLE} ${INGOT_LIT} -sv
  ${CMAKE_CURRENT_BINARY_DIR})
set(INGOT_LIT_TOOLS ingot ingot-opt)
if(TARGET ingot-compiler)
  list(APPEND INGOT_LIT_TOOLS ingot-compiler)
endif()
add_custom_target(check-lit COMMAND ${INGOT_LIT_COMMAND}
  DEPENDS ${INGOT_LIT_TOOLS} USES_TERMINAL)
add_test(NAME lit COMMAND ${INGOT_LIT_COMMAND})
