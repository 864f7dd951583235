#pragma once
// YAML files of the project read strictly: what is wrong is collected with its place.

#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/YAMLTraits.h"

namespace stillpoint::nvhooks {

/// Appends "path:line:column: error: ..." and the line itself to the string that `context` points to.
inline void append_yaml_error(const llvm::SMDiagnostic& diagnostic, void* context)
{
    llvm::raw_string_ostream out(*static_cast<std::string*>(context));
    diagnostic.print(nullptr, out, /*ShowColors=*/false);
}

/// Reads the text as YAML, whatever it says; complaints are appended. Neither a broken text nor one without a document may reach
/// llvm::yaml's traits: they dereference what is not there.
inline void check_syntax(const llvm::MemoryBuffer& file, llvm::StringRef path, std::string& complaints)
{
    const llvm::MemoryBufferRef text(file.getBuffer(), path);
    llvm::SourceMgr sources;
    sources.setDiagHandler(&append_yaml_error, &complaints);
    llvm::yaml::Stream whole(text, sources);
    if (!whole.validate() || !complaints.empty()) {
        return;
    }
    llvm::yaml::Stream stream(text, sources);
    auto document = stream.begin();
    llvm::yaml::Node* root = document == stream.end() ? nullptr : document->getRoot();
    if (root == nullptr || llvm::isa<llvm::yaml::NullNode>(root)) {
        complaints = path.str() + ":1:1: error: empty: expected keys with values";
    }
}

/// Reads one document into `value` through its llvm::yaml traits. Errors: every complaint, with line and column.
template <typename Value>
llvm::Error read_yaml(const llvm::MemoryBuffer& file, llvm::StringRef path, Value& value)
{
    std::string complaints;
    check_syntax(file, path, complaints);
    if (!complaints.empty()) {
        return llvm::createStringError(llvm::inconvertibleErrorCode(), llvm::StringRef(complaints).rtrim('\n').str());
    }
    llvm::yaml::Input input(llvm::MemoryBufferRef(file.getBuffer(), path), nullptr, &append_yaml_error, &complaints);
    input >> value;
    if (input.error()) {
        if (complaints.empty()) {
            complaints = path.str() + ":1:1: error: not a YAML mapping\n";
        }
        return llvm::createStringError(input.error(), llvm::StringRef(complaints).rtrim('\n').str());
    }
    return llvm::Error::success();
}

}  // namespace stillpoint::nvhooks
