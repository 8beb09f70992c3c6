#include "base/control_groups.h"

#include <sstream>

namespace octavo {
namespace {

bool lists(const std::string& controllers, std::string_view wanted) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');)
    if (name == wanted) return true;
  return false;
}

// A container may see the path of a group that is not mounted in it, its own group standing at the
// root: the root always counts.
void add_path(bool version_2, const std::string& root, std::string path,
              std::vector<ControlGroup>& out) {
  out.push_back({version_2, root});
  if (path.find("..") != std::string::npos) return;  // outside of what is mounted
  while (path.size() > 1) {
    out.push_back({version_2, root + path});
    path.resize(path.rfind('/'));
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view own_groups, std::string_view controller,
                                         const std::string& root) {
  std::vector<ControlGroup> out;
  std::istringstream lines{std::string(own_groups)};
  // "number:controllers:/path"; version 2 has number 0 and no controllers.
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    if (path.empty() || path.front() != '/') continue;
    if (controllers.empty())
      add_path(true, root, path, out);
    else if (lists(controllers, controller))
      for (const std::string& mount : {controllers, std::string(controller)})
        add_path(false, root + "/" + mount, path, out);
  }
  return out;
}

}  // namespace octavo
