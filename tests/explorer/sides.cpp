#include "sides.hpp"

#include <utility>

#include "sim/crash_images.hpp"
#include "sim/two_sides.hpp"

namespace stillpoint::explorer {

namespace {

using sim::EventKind;

sim::CrashModel empty_file() { return {sim::Profile::page, sim::CrashImage{{}, false}}; }

/// A file without a name is gone.
sim::CrashImage named(sim::CrashImage image) { return image.named ? std::move(image) : sim::CrashImage{{}, false}; }

template <class Values>
void keep_last(Values& values)
{
    values.erase(values.begin(), values.end() - 1);
}

template <class Values>
const auto& any_of(const Values& values, Random& random)
{
    return values[random() % values.size()];
}

}  // namespace

sim::CrashImage any_image(const sim::CrashModel& model, Random& random)
{
    sim::CrashImage chosen;
    std::uint64_t seen = 0;
    sim::for_each_image(model, {64, 24}, random, [&](const sim::CrashImage& image) {
        if (random() % ++seen == 0) {
            chosen = image;
        }
        return true;
    });
    return chosen;
}

Sides::Sides(ReplicatedFiles files)
    : here_(sim::Profile::page, named(std::move(files.here))), here_number_(files.here_number),
      replica_(sim::Profile::rados, named(std::move(files.replica))), incoming_(empty_file()), records_{std::move(files.record)},
      writers_{files.writer}
{
}

void Sides::apply(const sim::Event& event)
{
    const bool is_of_replica = event.medium == static_cast<std::uint8_t>(sim::Side::replica);
    const bool is_of_incoming = event.medium == static_cast<std::uint8_t>(sim::Side::incoming);
    switch (event.kind) {
    case EventKind::claim: writers_.push_back(event.value); return;
    case EventKind::replica_record: records_.emplace_back(event.data, event.data + event.size); return;
    case EventKind::replica_record_sync: keep_last(records_); return;
    case EventKind::replaced:
        replaced_ = NamedFile{std::exchange(here_, std::exchange(incoming_, empty_file())), here_number_};
        here_number_ = event.value;
        is_replaced_ = true;
        return;
    default: break;
    }
    if (is_of_replica && event.kind == EventKind::head_changed) {
        keep_last(writers_);
    }
    if (is_of_incoming && is_replaced_ && event.kind == EventKind::name_sync) {
        replaced_.reset();
    }
    (is_of_replica ? replica_ : is_of_incoming && !is_replaced_ ? incoming_ : here_).apply(event);
}

void Sides::kill()
{
    here_.kill();
    replica_.kill();
    incoming_ = empty_file();  // The next opening makes it again from nothing.
    is_replaced_ = false;
    keep_last(writers_);
}

ReplicatedFiles Sides::visible(std::uint64_t incoming_number) const
{
    return {here_.visible(), replica_.visible(), records_.back(), writers_.back(), here_number_, incoming_number};
}

ReplicatedFiles Sides::any_after_power_cut(Random& random) const
{
    const bool has_old_name = replaced_ && random() % 2 == 0;
    sim::CrashImage here = any_image(has_old_name ? replaced_->model : here_, random);
    here.named = here.named || (replaced_ && !has_old_name);  // Where no pool was there before, the old name names nothing.
    return {std::move(here),
            any_image(replica_, random),
            any_of(records_, random),
            any_of(writers_, random),
            has_old_name ? replaced_->number : here_number_,
            0};
}

}  // namespace stillpoint::explorer
