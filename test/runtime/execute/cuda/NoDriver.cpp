// A library that is no CUDA driver.
extern "C" int ingotNoDriver() { return 0; }
