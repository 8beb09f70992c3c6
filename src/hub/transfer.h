// What one repository of a hub is asked for.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "engine/hub_name.h"
#include "hub/file_list.h"
#include "hub/http_get.h"
#include "hub/partial_file.h"
#include "hub/pull.h"

namespace octavo::hub {

class Transfer {
 public:
  // Both must outlive it. Errors: invalid_argument (no address of a hub).
  static Result<Transfer> create(const HubName& name, const HubOptions& options);

  // Errors: as those of pull().
  Result<FileList> list_files() const;

  // What is missing of the file, in as many attempts as bring something. on_bytes: after each
  // piece; may be empty. Errors: as those of pull().
  Result<void> fetch(const HubFile& file, PartialFile& partial,
                     const std::function<void()>& on_bytes) const;

 private:
  Transfer(const HubName& name, const HubOptions& options, Origin origin)
      : name_(&name), options_(&options), origin_(std::move(origin)) {}
  void warn_of_plain_token() const;
  // Returns the URL of the next page.
  Result<std::string> read_page(const std::string& url, std::string& body) const;
  // One transfer. False: it was cut, or the server has a bad moment; another may bring more.
  // problem: what was wrong, then.
  Result<bool> fetch_some(const HubFile& file, PartialFile& partial,
                          const std::function<void()>& on_bytes, std::string& problem) const;

  const HubName* name_;
  const HubOptions* options_;
  Origin origin_;
};

}  // namespace octavo::hub
