// Fetches a model that is a folder of safetensors.
#pragma once

#include <string>

#include "base/result.h"
#include "hub/transfer.h"

namespace octavo::hub {

// The path of the folder, whole and checked: config.json, the tokenizer's files and the weights.
// config.json gets its name last, so that a folder that has it is whole; it goes before a file of
// another version comes. What is whole already is not fetched again. Errors: as those of pull().
Result<std::string> pull_folder(const Transfer& transfer, const FileList& files,
                                const HubName& name, const HubOptions& options);

}  // namespace octavo::hub
