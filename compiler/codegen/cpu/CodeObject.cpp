// 1. checkObject: symbols and sections of each kernel's object. 2. linkObjects:
// LLD, whose inputs and output live in a private folder for the length of the
// call. 3. describeElf: the checks again on the result, and where things are.
#include "compiler/codegen/cpu/CodeObject.h"

#include "compiler/package/ScratchFolder.h"

#include "lld/Common/Driver.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace ingot::codegen {
namespace {

using Elf = llvm::object::ELFFile<llvm::object::ELF64LE>;
using Section = llvm::object::ELF64LE::Shdr;

std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

llvm::StringRef asString(const std::vector<std::uint8_t> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string sectionName(const Elf &elf, const Section &section) {
  auto name = elf.getSectionName(section);
  if (!name) {
    llvm::consumeError(name.takeError());
    return "?";
  }
  return name->str();
}

// Sections that no mapped kernel may have, in an object or the linked result.
Status checkSections(const Elf &elf, llvm::ArrayRef<Section> sections,
                     const std::string &what) {
  for (const Section &section : sections) {
    const std::string name = sectionName(elf, section);
    const bool constructor = section.sh_type == llvm::ELF::SHT_INIT_ARRAY ||
                             section.sh_type == llvm::ELF::SHT_FINI_ARRAY ||
                             section.sh_type == llvm::ELF::SHT_PREINIT_ARRAY ||
                             name == ".ctors" || name == ".dtors";
    if (constructor)
      return Status::internal(what + ": has constructors (section " + name +
                              ")");
    if ((section.sh_flags & llvm::ELF::SHF_TLS) != 0)
      return Status::internal(what + ": has thread-local data (section " +
                              name + ")");
    if ((section.sh_flags & llvm::ELF::SHF_ALLOC) != 0 &&
        (section.sh_flags & llvm::ELF::SHF_WRITE) != 0 && section.sh_size != 0)
      return Status::internal(what + ": has writable data (section " + name +
                              ", " + std::to_string(section.sh_size) +
                              " bytes)");
  }
  return Status::ok();
}

// Names of symbols of `table` that are defined nowhere.
Status checkSymbols(const Elf &elf, const Section &table,
                    const std::string &what) {
  auto symbols = elf.symbols(&table);
  if (!symbols)
    return Status::internal(what + ": " + messageOf(symbols.takeError()));
  auto strings = elf.getStringTableForSymtab(table);
  if (!strings)
    return Status::internal(what + ": " + messageOf(strings.takeError()));
  for (const auto &symbol : *symbols) {
    if (symbol.st_shndx != llvm::ELF::SHN_UNDEF || symbol.st_name == 0)
      continue;
    auto name = symbol.getName(*strings);
    if (!name)
      return Status::internal(what + ": " + messageOf(name.takeError()));
    return Status::internal(what + ": needs the outside symbol \"" +
                            name->str() + "\"");
  }
  return Status::ok();
}

// Where temporary files go on this system.
std::string temporaryPath(const char *name) {
  llvm::SmallString<128> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

std::mutex &linkerMutex() {
  static std::mutex mutex;
  return mutex;
}

} // namespace

Status checkObject(const NamedObject &object) {
  const std::string what = "kernel " + object.name;
  auto elf = Elf::create(asString(object.bytes));
  if (!elf)
    return Status::internal(what + ": " + messageOf(elf.takeError()));
  auto sections = elf->sections();
  if (!sections)
    return Status::internal(what + ": " + messageOf(sections.takeError()));
  INGOT_RETURN_IF_ERROR(checkSections(*elf, *sections, what));
  for (const Section &section : *sections)
    if (section.sh_type == llvm::ELF::SHT_SYMTAB)
      INGOT_RETURN_IF_ERROR(checkSymbols(*elf, section, what));
  return Status::ok();
}

Result<std::vector<std::uint8_t>>
linkObjects(const std::vector<NamedObject> &objects,
            const std::string &levelName) {
  const package::ScratchFolder folder(temporaryPath("ingot-link"));
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-Bsymbolic",
                                        "--no-undefined",
                                        "--no-rosegment",
                                        "-z",
                                        "noseparate-code",
                                        "-z",
                                        "rodynamic",
                                        "-z",
                                        "norelro",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "max-page-size=4096",
                                        "--build-id=none",
                                        "--hash-style=gnu",
                                        "--threads=1",
                                        "-O2",
                                        "-soname",
                                        "ingot-" + levelName};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string path = folder.file(std::to_string(i) + ".o");
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    if (!error)
      file << asString(objects[i].bytes);
    file.close();
    if (error || file.has_error())
      return Status::io("cannot write \"" + path +
                        "\": " + (error ? error : file.error()).message());
    arguments.push_back(path);
  }
  const std::string output = folder.file("code.so");
  arguments.insert(arguments.end(), {"-o", output});

  std::vector<const char *> raw;
  for (const std::string &argument : arguments)
    raw.push_back(argument.c_str());
  std::string text;
  {
    // LLD keeps global state: one link at a time.
    std::lock_guard<std::mutex> lock(linkerMutex());
    llvm::raw_string_ostream log(text);
    const lld::Result result =
        lld::lldMain(raw, log, log, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0 || !result.canRunAgain)
      return Status::internal("linking the kernels of level " + levelName +
                              ": " + text);
  }
  auto buffer = llvm::MemoryBuffer::getFile(output);
  if (!buffer)
    return Status::io("cannot read \"" + output +
                      "\": " + buffer.getError().message());
  const llvm::StringRef bytes = (*buffer)->getBuffer();
  return std::vector<std::uint8_t>(bytes.bytes_begin(), bytes.bytes_end());
}

Status describeElf(CompiledLevel &level) {
  const std::string what = "code of level " + level.name;
  auto elf = Elf::create(asString(level.elf));
  if (!elf)
    return Status::internal(what + ": " + messageOf(elf.takeError()));
  auto headers = elf->program_headers();
  auto sections = elf->sections();
  if (!headers || !sections)
    return Status::internal(
        what + ": " +
        messageOf(llvm::joinErrors(headers.takeError(), sections.takeError())));
  unsigned loads = 0;
  for (const auto &header : *headers) {
    if (header.p_type != llvm::ELF::PT_LOAD)
      continue;
    ++loads;
    if (header.p_flags != (llvm::ELF::PF_R | llvm::ELF::PF_X) ||
        header.p_offset != 0 || header.p_vaddr != 0 ||
        header.p_filesz != header.p_memsz)
      return Status::internal(what +
                              ": expected one read and execute segment at 0");
    level.mapOffset = header.p_offset;
    level.mapVaddr = header.p_vaddr;
    level.mapSize = header.p_memsz;
  }
  if (loads != 1)
    return Status::internal(what + ": expected one load segment, found " +
                            std::to_string(loads));

  INGOT_RETURN_IF_ERROR(checkSections(*elf, *sections, what));
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> defined;
  for (const Section &section : *sections) {
    const std::string name = sectionName(*elf, section);
    if ((section.sh_type == llvm::ELF::SHT_RELA ||
         section.sh_type == llvm::ELF::SHT_REL ||
         section.sh_type == llvm::ELF::SHT_RELR) &&
        section.sh_size != 0)
      return Status::internal(what + ": has relocations (section " + name +
                              ")");
    if (name == ".eh_frame") {
      level.ehFrameOffset = section.sh_offset;
      level.ehFrameSize = section.sh_size;
    }
    if (section.sh_type != llvm::ELF::SHT_DYNSYM)
      continue;
    INGOT_RETURN_IF_ERROR(checkSymbols(*elf, section, what));
    auto strings = elf->getStringTableForSymtab(section);
    auto symbols = elf->symbols(&section);
    if (!strings || !symbols)
      return Status::internal(what + ": " +
                              messageOf(llvm::joinErrors(strings.takeError(),
                                                         symbols.takeError())));
    for (const auto &symbol : *symbols)
      if (auto symbolName = symbol.getName(*strings))
        defined[symbolName->str()] = {symbol.st_value, symbol.st_size};
      else
        return Status::internal(what + ": " +
                                messageOf(symbolName.takeError()));
  }
  if (level.ehFrameSize == 0)
    return Status::internal(what + ": has no unwind tables");
  for (CompiledKernel &kernel : level.kernels) {
    auto found = defined.find(kernel.name);
    if (found == defined.end() || found->second.first == 0 ||
        found->second.first + found->second.second > level.mapSize)
      return Status::internal(what + ": lost the kernel " + kernel.name);
    kernel.offset = found->second.first;
    kernel.size = found->second.second;
  }
  return Status::ok();
}

} // namespace ingot::codegen
