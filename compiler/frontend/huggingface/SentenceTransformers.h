// What the files of sentence-transformers beside a model say of its vectors:
// modules.json, the pooling's config.json, sentence_bert_config.json and
// config_sentence_transformers.json. A folder without modules.json says nothing.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/huggingface/ModelFolder.h"

namespace ingot {

// Sets the pooling and the longest text of an encoder, each with a note. Refuses
// modules, poolings and keys that would change a vector in a way not known here.
Status readSentenceTransformers(const ModelFolder &folder, ModelSpec &spec);

} // namespace ingot
