// 1. linalg to loops, loops to branches, all of it to the LLVM dialect. 2. LLVM
// IR, with an entry that takes its arguments as one list of pointers. 3. O2 and
// a JIT for this machine; functions of libm come from the process.
#include "compiler/codegen/graph/GraphCode.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace ingot::graph {
namespace {

constexpr const char *kEntry = "ingot_graph_entry";

Status lowerToLlvm(ModuleOp module) {
  std::string message;
  ScopedDiagnosticHandler handler(module.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (message.empty())
                                      message = diagnostic.str();
                                    return success();
                                  });
  PassManager passes(module.getContext());
  passes.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createConvertSCFToCFPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  ConvertFuncToLLVMPassOptions options;
  options.useBarePtrCallConv = true;
  passes.addPass(createConvertFuncToLLVMPass(options));
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return Status::internal("a graph's loops do not lower to LLVM: " + message);
  return Status::ok();
}

// void entry(ptr list): calls the graph with list[0], list[1] ...
void addEntry(llvm::Module &module) {
  llvm::Function *graph = module.getFunction(kGraphFunction);
  llvm::IRBuilder<> builder(module.getContext());
  auto *pointer = builder.getPtrTy();
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), {pointer}, false),
      llvm::GlobalValue::ExternalLinkage, kEntry, module);
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i < graph->arg_size(); ++i)
    arguments.push_back(builder.CreateLoad(
        pointer, builder.CreateConstGEP1_64(pointer, entry->getArg(0), i)));
  builder.CreateCall(graph, arguments);
  builder.CreateRetVoid();
  graph->setLinkage(llvm::GlobalValue::InternalLinkage);
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

class JitCode : public GraphCode {
public:
  JitCode(std::unique_ptr<llvm::orc::LLJIT> jit, void (*entry)(void **))
      : jit_(std::move(jit)), entry_(entry) {}
  void run(void **arguments) const override { entry_(arguments); }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  void (*entry_)(void **);
};

} // namespace

Result<std::unique_ptr<GraphCode>> compileGraph(LoweredGraph &graph) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  MLIRContext *context = graph.module->getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  INGOT_RETURN_IF_ERROR(lowerToLlvm(*graph.module));
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(*graph.module, *llvmContext);
  if (!module)
    return Status::internal("a graph does not translate to LLVM IR");
  addEntry(*module);

  auto fail = [](llvm::Error error) {
    return Status::internal("code of a graph: " +
                            llvm::toString(std::move(error)));
  };
  auto target = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return fail(target.takeError());
  target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = target->createTargetMachine();
  if (!machine)
    return fail(machine.takeError());
  module->setTargetTriple((*machine)->getTargetTriple().str());
  module->setDataLayout((*machine)->createDataLayout());
  optimize(*module, **machine);
  auto jit =
      llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
  if (!jit)
    return fail(jit.takeError());
  auto symbols = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!symbols)
    return fail(symbols.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*symbols));
  if (llvm::Error error = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(
          std::move(module), std::move(llvmContext))))
    return fail(std::move(error));
  auto entry = (*jit)->lookup(kEntry);
  if (!entry)
    return fail(entry.takeError());
  return std::unique_ptr<GraphCode>(
      new JitCode(std::move(*jit), entry->toPtr<void (*)(void **)>()));
}

} // namespace ingot::graph
