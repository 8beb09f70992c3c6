// Models known by a short name, and where they are kept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo {

struct CatalogEntry {
  std::string_view name;      // "smollm2-135m"
  std::string_view file;      // in the cache folder
  double temperature, top_p;  // the model's generation defaults
};

std::span<const CatalogEntry> catalog();

// The entry whose file this path names, by its file name.
const CatalogEntry* find_in_catalog(std::string_view path);

// ${XDG_CACHE_HOME:-~/.cache}/octavo/models
std::string models_folder();

// ${XDG_CACHE_HOME:-~/.cache}/octavo/packs; empty: the environment names neither folder.
std::string packs_folder();

// A path stays a path; a short name, and a name on a hub (hub_name.h), becomes a file of the cache
// folder. Error not_found: says what is there and how to fetch the model.
Result<std::string> resolve_model(std::string_view model);

}  // namespace octavo
