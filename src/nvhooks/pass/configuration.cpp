#include "configuration.hpp"

#include <algorithm>
#include <map>

#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "nvhooks/abi/nvhooks_abi.h"

namespace stillpoint::nvhooks {

namespace {

llvm::cl::opt<std::string> runtime_option("stillpoint-runtime", llvm::cl::value_desc("layer.yaml"),
                                          llvm::cl::desc("Configuration of the layer whose hooks are to be called"));

llvm::Expected<Configuration> load_configuration(const std::string& path)
{
    auto layer = read_layer(path);
    if (!layer) {
        return layer.takeError();
    }
    Configuration configuration;
    configuration.layer = std::move(*layer);
    auto descriptions = Descriptions::load(configuration.layer.descriptions);
    if (!descriptions) {
        return descriptions.takeError();
    }
    configuration.descriptions = std::move(*descriptions);
    for (const std::string& function : configuration.layer.keeps_fase) {
        configuration.keeps_fase.insert(function);
    }
    for (const Allocator& allocator : configuration.layer.allocators) {
        std::optional<SizeExpression>& size = configuration.allocators[allocator.function];
        if (allocator.size.empty()) {
            continue;
        }
        auto expression = SizeExpression::parse(allocator.size);
        if (!expression) {
            return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s: error: allocators: %s: %s", path.c_str(),
                                           allocator.function.c_str(), llvm::toString(expression.takeError()).c_str());
        }
        size = std::move(*expression);
    }
    return configuration;
}

/// The thread sanitizer gives programs memory in few places only: libstillpoint's window is another one then (stillpoint.h).
void follow_thread_sanitizer(const llvm::Module& module, Layer& layer)
{
    const bool sanitized = std::any_of(module.begin(), module.end(), [](const llvm::Function& function) {
        return function.hasFnAttribute(llvm::Attribute::SanitizeThread);
    });
    if (!sanitized || !layer.window || layer.window->shift != NVHOOKS_WINDOW_SHIFT || layer.window->index != NVHOOKS_WINDOW_INDEX) {
        return;
    }
    layer.window->index = NVHOOKS_WINDOW_INDEX_UNDER_TSAN;
    if (layer.cards && layer.cards->table == NVHOOKS_CARD_TABLE_FOR(NVHOOKS_WINDOW_INDEX)) {
        layer.cards->table = NVHOOKS_CARD_TABLE_FOR(NVHOOKS_WINDOW_INDEX_UNDER_TSAN);
        layer.cards->coarse_table = layer.cards->coarse_table == 0 ? 0 : NVHOOKS_COARSE_TABLE_FOR(NVHOOKS_WINDOW_INDEX_UNDER_TSAN);
    }
}

}  // namespace

bool Configuration::is_allocator(const llvm::CallBase& call) const
{
    const llvm::Function* callee = call.getCalledFunction();
    return callee != nullptr && allocators.find(callee->getName()) != allocators.end();
}

llvm::Expected<Configuration> configuration_of(const llvm::Module& module)
{
    if (runtime_option.empty()) {
        return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                       "no layer given: pass -mllvm -stillpoint-runtime=FILE, or compile with `stillpoint cc`");
    }
    // Read once: both passes ask, for each module of the compiler's process.
    static std::map<std::string, Configuration> read;
    auto known = read.find(runtime_option);
    if (known == read.end()) {
        auto configuration = load_configuration(runtime_option);
        if (!configuration) {
            return configuration.takeError();
        }
        known = read.emplace(runtime_option, std::move(*configuration)).first;
    }
    Configuration configuration = known->second;
    if (auto error = configuration.descriptions.add_attributes(module)) {
        return error;
    }
    follow_thread_sanitizer(module, configuration.layer);
    return configuration;
}

}  // namespace stillpoint::nvhooks
