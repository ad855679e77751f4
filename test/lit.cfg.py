# The lit suite: text tests of dialects, passes and pipelines. Each .mlir or
# .test file says in its RUN lines what is run.
import lit.formats

config.name = "Ingot"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["runtime", "models", "e2e", "bench", "fuzz", "simt",
                   "examples-prelude.mlir"]
config.test_source_root = config.ingot_source_dir + "/test"
config.test_exec_root = config.ingot_binary_dir + "/test/lit"

# Programs of the build come first, then FileCheck, not and count.
config.environment["PATH"] = ":".join(
    [config.ingot_tools_dir, config.llvm_tools_dir, config.environment["PATH"]])
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%source_dir", config.ingot_source_dir))
# Absent where the emulator is not built.
config.substitutions.append(("%stand_in_driver",
                             config.ingot_binary_dir + "/test/simt/libIngotStandInDriver.so"))
