// Messages as clients send them, brought into one shape, and from that into a template's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "text/chat_traits.h"

namespace octavo {

// One shape for all that clients send: content is one text, or null for an assistant that says
// nothing; arguments of calls are JSON text; reasoning is reasoning_content, however it was called;
// what is null or an empty list is gone. invalid_argument, naming the place, for anything but a
// non-empty list of objects with a role, for parts that are no text, and for calls that are none.
Result<nlohmann::ordered_json> plain_messages(nlohmann::ordered_json messages);

// The text of a message's content: of a string, or of parts together. invalid_argument, naming
// `place`, for what is neither.
Result<std::string> text_of_content(const nlohmann::ordered_json& content,
                                    const std::string& place);

// Plain messages as a template with these traits expects them: text as a string or as one part,
// arguments as an object or as text, a developer's message as the system's, reasoning under the
// template's name for it.
nlohmann::ordered_json shape_messages(nlohmann::ordered_json plain, const ChatTraits& traits);

}  // namespace octavo
