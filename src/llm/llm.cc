#include "llm/llm.h"

#include <fmt/format.h>

#include <utility>

#include "engine/catalog.h"
#include "engine/load.h"
#include "llm/chat_prompt.h"
#include "llm/requests.h"

namespace octavo {

LLMError::LLMError(Error error)
    : std::runtime_error(fmt::format("{} [{}]", error.message, error_name(error.code))),
      error_(std::move(error)) {}

struct LLM::Impl {
  LoadedEngine loaded;
  Run::Places places;
  const CatalogEntry* known = nullptr;

  std::unique_ptr<Run> start(RunSource source, RunOptions options) const {
    return std::make_unique<Run>(*loaded.engine, places, std::move(source), std::move(options));
  }
  std::vector<RequestOutput> collect(RunSource source, size_t total,
                                     const std::function<int(size_t)>& num_choices,
                                     const GenerateOptions& options) const;
};

namespace {

// What was cancelled before it began.
RequestOutput aborted(int num_choices) {
  RequestOutput output;
  output.finished = true;
  fill_outputs(output, num_choices);
  return output;
}

// One request after the other, made from the index of the prompt.
RunSource source_of(size_t count, std::function<RunItem(size_t)> make) {
  return [next = size_t{0}, count, make = std::move(make)]() mutable -> std::optional<RunItem> {
    if (next == count) return std::nullopt;
    return make(next++);
  };
}

RequestOutput only(std::vector<RequestOutput> outputs) { return std::move(outputs.front()); }

}  // namespace

std::vector<RequestOutput> LLM::Impl::collect(RunSource source, size_t total,
                                              const std::function<int(size_t)>& num_choices,
                                              const GenerateOptions& options) const {
  std::vector<RequestOutput> outputs(total);
  size_t done = 0;
  const auto run = start(std::move(source), {.wants_deltas = static_cast<bool>(options.on_event),
                                             .cancel = options.cancel});
  while (auto event = run->next()) {
    if (options.on_event) options.on_event(*event);
    if (!event->output) continue;
    outputs[event->prompt_index] = std::move(*event->output);
    if (options.on_progress) options.on_progress(++done, total);
  }
  for (size_t i = 0; i < total; ++i)
    if (!outputs[i].finished) outputs[i] = aborted(num_choices(i));
  return outputs;
}

LLM::LLM(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;
LLM::~LLM() = default;

LLM::LLM(EngineOptions options) {
  auto loaded = load(std::move(options));
  if (!loaded) throw LLMError(loaded.error());
  *this = std::move(*loaded);
}

Result<LLM> LLM::load(EngineOptions options) {
  auto impl = std::make_unique<Impl>();
  OCTAVO_TRY(options.model, resolve_model(options.model));
  impl->known = find_in_catalog(options.model);
  impl->places = std::make_shared<std::counting_semaphore<>>(options.max_queue_len);
  OCTAVO_TRY(impl->loaded, load_engine(options));
  return LLM(std::move(impl));
}

// --- generate and chat ----------------------------------------------------------------------

std::vector<RequestOutput> LLM::generate(std::span<const Prompt> prompts) {
  return generate(prompts, get_default_sampling_params());
}

std::vector<RequestOutput> LLM::generate(std::span<const Prompt> prompts,
                                         const SamplingParams& params,
                                         const GenerateOptions& options) {
  const auto make = [&](size_t i) { return request_of(impl_->loaded, prompts[i], params); };
  return impl_->collect(
      source_of(prompts.size(), make), prompts.size(), [&](size_t) { return params.n; }, options);
}

std::vector<RequestOutput> LLM::generate(std::span<const Prompt> prompts,
                                         std::span<const SamplingParams> params,
                                         const GenerateOptions& options) {
  if (params.size() != prompts.size())
    throw LLMError({ErrorCode::invalid_argument,
                    fmt::format("there are {} prompts and {} sampling parameters; give one for "
                                "each prompt, or one for all",
                                prompts.size(), params.size())});
  const auto make = [&](size_t i) { return request_of(impl_->loaded, prompts[i], params[i]); };
  return impl_->collect(
      source_of(prompts.size(), make), prompts.size(), [&](size_t i) { return params[i].n; },
      options);
}

RequestOutput LLM::generate(const Prompt& prompt) {
  return generate(prompt, get_default_sampling_params());
}

RequestOutput LLM::generate(const Prompt& prompt, const SamplingParams& params,
                            const GenerateOptions& options) {
  return only(generate(std::span(&prompt, 1), params, options));
}

std::vector<RequestOutput> LLM::chat(std::span<const ChatMessages> conversations,
                                     const SamplingParams& params, const ChatOptions& chat,
                                     const GenerateOptions& options) {
  const auto make = [&](size_t i) {
    return request_of(impl_->loaded, to_json(conversations[i]), chat, params);
  };
  return impl_->collect(
      source_of(conversations.size(), make), conversations.size(), [&](size_t) { return params.n; },
      options);
}

std::vector<RequestOutput> LLM::embed(std::span<const Prompt> prompts) {
  return embed(prompts, get_default_pooling_params());
}

std::vector<RequestOutput> LLM::embed(std::span<const Prompt> prompts, const PoolingParams& params,
                                      const GenerateOptions& options) {
  const auto make = [&](size_t i) {
    RunItem item = request_of(impl_->loaded, prompts[i], {});
    if (item.request) item.request->pooling = params;
    return item;
  };
  return impl_->collect(
      source_of(prompts.size(), make), prompts.size(), [](size_t) { return 1; }, options);
}

PoolingParams LLM::get_default_pooling_params() const {
  return {.type = impl_->loaded.pooling.type, .normalize = impl_->loaded.pooling.normalize};
}

RequestOutput LLM::chat(const ChatMessages& messages) {
  return chat(messages, get_default_sampling_params());
}

RequestOutput LLM::chat(const ChatMessages& messages, const SamplingParams& params,
                        const ChatOptions& options, const GenerateOptions& generate) {
  return only(chat(std::span(&messages, 1), params, options, generate));
}

Stream LLM::stream(std::vector<Prompt> prompts, const SamplingParams& params,
                   std::stop_token cancel) {
  const size_t count = prompts.size();
  auto make = [loaded = &impl_->loaded, prompts = std::move(prompts), params](size_t i) {
    return request_of(*loaded, prompts[i], params);
  };
  return Stream(impl_->start(source_of(count, std::move(make)),
                             {.wants_deltas = true, .cancel = std::move(cancel)}));
}

Stream LLM::stream_chat(std::vector<ChatMessages> conversations, const SamplingParams& params,
                        const ChatOptions& chat, std::stop_token cancel) {
  const size_t count = conversations.size();
  auto make = [loaded = &impl_->loaded, conversations = std::move(conversations), params,
               chat](size_t i) {
    return request_of(*loaded, to_json(conversations[i]), chat, params);
  };
  return Stream(impl_->start(source_of(count, std::move(make)),
                             {.wants_deltas = true, .cancel = std::move(cancel)}));
}

// --- beside it ------------------------------------------------------------------------------

SamplingParams LLM::get_default_sampling_params() const {
  SamplingParams params;
  if (impl_->known) {
    params.temperature = impl_->known->temperature;
    params.top_p = impl_->known->top_p;
  }
  return params;
}

const Tokenizer& LLM::get_tokenizer() const { return *impl_->loaded.tokenizer; }

Result<std::vector<TokenId>> LLM::encode(std::string_view text) const {
  return get_tokenizer().encode(text, {.parse_special = false, .add_special = true});
}

std::string LLM::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  return get_tokenizer().decode(ids, skip_special_tokens, SpacePrefix::strip);
}

int LLM::max_model_len() const { return impl_->loaded.max_model_len; }
const std::vector<std::string>& LLM::notes() const { return impl_->loaded.notes; }

void LLM::reset_prefix_cache() {
  impl_->loaded.engine->inspect([](EngineCore& core) { core.scheduler().prefix_tree().clear(); });
}

Result<int> LLM::pin_prefix(const Prompt& prompt) {
  SamplingParams params;
  params.max_tokens = 0;
  const RequestOutput output = generate(prompt, params);
  if (output.error) return tl::make_unexpected(*output.error);
  Result<int> pinned = 0;
  impl_->loaded.engine->inspect([&](EngineCore& core) {
    const Request request{.cache_salt = prompt.cache_salt, .adapter = prompt.adapter};
    pinned = core.scheduler().pin(core.key_of(request), output.prompt_token_ids);
  });
  if (pinned && *pinned == 0)
    return fail(ErrorCode::unsupported,
                "the engine keeps no prefixes; set enable_prefix_caching, and kv_layout to paged");
  return pinned;
}

void LLM::unpin_prefixes() {
  impl_->loaded.engine->inspect([](EngineCore& core) { core.scheduler().unpin_all(); });
}

Result<std::shared_ptr<const LoraAdapter>> LLM::load_lora(const std::string& path) const {
  const LoadedEngine& loaded = impl_->loaded;
  const int max_rank = loaded.model->limits().max_lora_rank;
  if (max_rank == 0)
    return fail(ErrorCode::invalid_argument, "the engine takes no adapters; set max_lora_rank");
  return load_adapter(path, loaded.config, max_rank);
}

EngineMetrics LLM::get_metrics() const {
  EngineMetrics metrics;
  impl_->loaded.engine->inspect([&](EngineCore& core) {
    metrics.scheduler = core.scheduler().stats();
    metrics.prefix_cache = core.scheduler().prefix_tree().stats();
  });
  return metrics;
}

}  // namespace octavo
