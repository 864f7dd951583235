#include "canonical_image.hpp"

namespace stillpoint::explorer {

namespace {
constinit const CanonicalForm* first_form = nullptr;
}

CanonicalForm::CanonicalForm(std::string_view engine, MakeCanonical make) noexcept : engine_(engine), make_(make), next_(first_form)
{
    first_form = this;
}

MakeCanonical canonical_form_of(std::string_view engine) noexcept
{
    for (const CanonicalForm* form = first_form; form != nullptr; form = form->next_) {
        if (form->engine_ == engine) {
            return form->make_;
        }
    }
    return nullptr;
}

}  // namespace stillpoint::explorer
