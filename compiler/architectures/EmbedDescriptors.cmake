# Writes the descriptors as raw string literals into one C++ file:
#   cmake -DOUTPUT=x.cpp "-DINPUTS=a.json;b.json" -P EmbedDescriptors.cmake
set(TEXT "#include \"compiler/architectures/Descriptor.h\"\n\n")
string(APPEND TEXT "namespace ingot {\n\n")
string(APPEND TEXT "const std::vector<EmbeddedDescriptor> &embeddedDescriptors() {\n")
string(APPEND TEXT "  static const std::vector<EmbeddedDescriptor> files = {\n")
foreach(INPUT IN LISTS INPUTS)
  get_filename_component(NAME "${INPUT}" NAME)
  file(READ "${INPUT}" CONTENT)
  string(APPEND TEXT "      {\"${NAME}\", R\"ingot(${CONTENT})ingot\"},\n")
endforeach()
string(APPEND TEXT "  };\n  return files;\n}\n\n} // namespace ingot\n")
file(WRITE "${OUTPUT}" "${TEXT}")
