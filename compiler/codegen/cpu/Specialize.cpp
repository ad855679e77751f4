// 1. Parse the source's bitcode. 2. Make `symbol(params, slice)`, which calls the
// generic function with the constants. 3. Make everything else internal and
// always inlined, with the level's features. 4. Drop what is not reached, run O3
// and emit. Library calls are switched off throughout: a kernel has no imports.
#include "compiler/codegen/cpu/Specialize.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

#include <mutex>

namespace ingot::codegen {
namespace {

constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

Result<std::unique_ptr<llvm::TargetMachine>>
targetMachine(const CpuLevel &level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!target)
    return Status::internal("LLVM has no x86-64 target: " + error);
  llvm::TargetOptions options;
  // No contraction beyond the fma that the sources name (docs/numerics.md).
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      kTriple, level.cpu, level.extraFeatures, options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return Status::internal("LLVM refuses the level " + level.name);
  return machine;
}

// The exported function: constants take the place of the arguments that follow
// params and slice.
Status addWrapper(llvm::Module &module, const KernelEntry &entry,
                  const std::string &symbol) {
  llvm::Function *generic = module.getFunction(entry.function);
  if (!generic || generic->isDeclaration() ||
      generic->arg_size() != 2 + entry.constants.size())
    return Status::internal("kernel " + symbol + ": \"" + entry.function +
                            "\" is not a function of " + entry.source +
                            " with " + std::to_string(entry.constants.size()) +
                            " constants");
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer}, false);
  auto *wrapper = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(context, "entry", wrapper));
  std::vector<llvm::Value *> arguments = {wrapper->getArg(0),
                                          wrapper->getArg(1)};
  for (std::int32_t constant : entry.constants)
    arguments.push_back(builder.getInt32(static_cast<std::uint32_t>(constant)));
  builder.CreateCall(generic, arguments);
  builder.CreateRetVoid();
  return Status::ok();
}

void setAttributes(llvm::Module &module, const CpuLevel &level,
                   const std::string &symbol) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    for (llvm::Attribute::AttrKind kind :
         {llvm::Attribute::NoInline, llvm::Attribute::OptimizeNone,
          llvm::Attribute::AlwaysInline})
      function.removeFnAttr(kind);
    for (const char *kind :
         {"tune-cpu", "stack-protector-buffer-size", "frame-pointer"})
      function.removeFnAttr(kind);
    function.addFnAttr("target-cpu", level.cpu);
    function.addFnAttr("target-features", level.extraFeatures);
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr("no-jump-tables", "true");
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.setUWTableKind(llvm::UWTableKind::Async);
    if (function.getName() == symbol)
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setComdat(nullptr);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // No function of any library is known, so no loop becomes memcpy or memset.
  llvm::TargetLibraryInfoImpl noLibrary((llvm::Triple(kTriple)));
  noLibrary.disableAllFunctions();
  functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(noLibrary); });
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3));
  passes.run(module, modules);
}

} // namespace

Result<NamedObject> specialize(const CpuLevel &level, const KernelEntry &entry,
                               const std::string &symbol) {
  const BitcodeModule *source = nullptr;
  for (const BitcodeModule &module : level.modules)
    if (module.source == entry.source)
      source = &module;
  if (!source)
    return Status::internal("level " + level.name + " has no bitcode of " +
                            entry.source);

  llvm::LLVMContext context;
  auto parsed = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(
          {reinterpret_cast<const char *>(source->bytes.data()),
           source->bytes.size()},
          source->source),
      context);
  if (!parsed)
    return Status::internal("bitcode of " + source->source + ": " +
                            llvm::toString(parsed.takeError()));
  llvm::Module &module = **parsed;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine,
                         targetMachine(level));
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  module.setSourceFileName(symbol);
  INGOT_RETURN_IF_ERROR(addWrapper(module, entry, symbol));
  setAttributes(module, level, symbol);
  optimize(module, *machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emitter;
  llvm::TargetLibraryInfoImpl noLibrary((llvm::Triple(kTriple)));
  noLibrary.disableAllFunctions();
  emitter.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary));
  if (machine->addPassesToEmitFile(emitter, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return Status::internal("LLVM emits no objects for level " + level.name);
  emitter.run(module);
  NamedObject object{symbol,
                     std::vector<std::uint8_t>(bytes.begin(), bytes.end())};
  INGOT_RETURN_IF_ERROR(checkObject(object));
  return object;
}

} // namespace ingot::codegen
