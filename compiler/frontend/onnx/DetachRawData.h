// An ONNX file may hold weights of gigabytes inside its one message, and
// protobuf stops at 2 GiB and copies every byte that it parses. So the message
// is first walked on the wire: raw_data of every tensor is left where it lies in
// the mapped file, and only the skeleton around it goes to protobuf.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace ingot {

enum class OnnxMessage { Model, Tensor };

// The message in `bytes` with each tensor's raw_data replaced by raw_offset and
// raw_size (OnnxModel.proto), offsets being from the start of `bytes`. Fails
// where a length or a tag does not fit what is left, graphs nest deeper than 32,
// or the skeleton is above 1 GiB. `name` stands for the file in messages.
Result<std::string> detachRawData(std::span<const std::uint8_t> bytes,
                                  OnnxMessage message, const std::string &name);

} // namespace ingot
