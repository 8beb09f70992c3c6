// GET /: what is served, and how to call it.
#pragma once

#include <string>
#include <vector>

#include "http/message.h"

namespace octavo {

std::string home_page(const std::vector<std::string>& models, const http::Request& request,
                      bool needs_key);

}  // namespace octavo
