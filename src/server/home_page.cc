#include "server/home_page.h"

#include <fmt/format.h>

#include "base/version.h"

namespace octavo {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem;"
    "color:#222;background:#fdfdfb}h1{font-size:1.6rem}h2{font-size:1.1rem;margin-top:2rem}"
    "pre{background:#f1f0ea;padding:1rem;overflow-x:auto;border-radius:6px}"
    "code{font-size:.92em}td{padding:.15rem 1.2rem .15rem 0;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#1c1c1a}pre{background:#2a2a27}"
    "a{color:#9cf}}";

constexpr std::string_view kRoutes =
    "<table><tr><td><code>POST /v1/chat/completions</code><td>a conversation"
    "<tr><td><code>POST /v1/completions</code><td>text or token ids to go on from"
    "<tr><td><code>POST /v1/embeddings</code><td>vectors that stand for texts"
    "<tr><td><a href=/v1/models><code>GET /v1/models</code></a><td>what is served"
    "<tr><td><code>POST /tokenize</code>, <code>/detokenize</code><td>text and token ids"
    "<tr><td><a href=/health><code>GET /health</code></a>, <a href=/ready><code>/ready</code></a>"
    "<td>whether it lives, and takes requests"
    "<tr><td><a href=/metrics><code>GET /metrics</code></a><td>for Prometheus"
    "<tr><td><a href=/openapi.json><code>GET /openapi.json</code></a><td>all of it, described"
    "</table>";

}  // namespace

std::string home_page(const std::vector<std::string>& models, const http::Request& request,
                      bool needs_key) {
  const std::string* host = http::find_header(request.headers, "host");
  const std::string url =
      fmt::format("{}://{}", request.is_tls ? "https" : "http", host ? *host : "127.0.0.1:8000");
  const std::string key = needs_key ? " -H 'Authorization: Bearer KEY'" : "";
  std::string names;
  for (const std::string& model : models)
    names += fmt::format("{}<code>{}</code>", names.empty() ? "" : ", ", escaped(model));
  return fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width\"><title>Octavo: {model}</title>"
      "<style>{style}</style><h1>Octavo serves {names}</h1>"
      "<p>Any client of OpenAI's API can talk to it.</p><h2>curl</h2><pre>curl {url}"
      "/v1/chat/completions -H 'Content-Type: application/json'{key} \\\n  -d '{{\"model\": "
      "\"{model}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Say hello.\"}}]}}'</pre>"
      "<h2>Python</h2><pre>from openai import OpenAI\n\nclient = OpenAI(base_url=\"{url}/v1\", "
      "api_key=\"{key_name}\")\nanswer = client.chat.completions.create(\n    model=\"{model}\", "
      "messages=[{{\"role\": \"user\", \"content\": \"Say hello.\"}}])\n"
      "print(answer.choices[0].message.content)</pre><h2>What there is</h2>{routes}"
      "<p>octavo {version}</p></html>\n",
      fmt::arg("model", escaped(models.front())), fmt::arg("style", kStyle),
      fmt::arg("names", names), fmt::arg("url", escaped(url)), fmt::arg("key", key),
      fmt::arg("key_name", needs_key ? "KEY" : "none"), fmt::arg("routes", kRoutes),
      fmt::arg("version", version()));
}

}  // namespace octavo
