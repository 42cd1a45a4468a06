// Every pattern over the paths of one door: the ends and devices of probe/doors.hpp as templates over what a device
// opens. Only a door's own file includes it (probe/door.cpp.in), so that the compiler sees a pattern and its path at
// once and inlines what is timed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "pattern/flood.hpp"
#include "pattern/lockstep.hpp"
#include "pattern/one_sided_flood.hpp"
#include "pattern/patterns.hpp"
#include "pattern/round_trip.hpp"
#include "pattern/written.hpp"
#include "probe/doors.hpp"

namespace fabricbench {

/// A pattern behind the one virtual call that it takes; what it times stays in the type.
template <class P>
class PreparedPattern final : public Prepared {
 public:
  template <class Paths>
  PreparedPattern(Paths&& paths, Task& task) : pattern_(std::forward<Paths>(paths), task) {}
  Outcome run() override {
    if constexpr (std::is_void_v<decltype(pattern_.run())>) {
      pattern_.run();
      return {};
    } else {
      return pattern_.run();
    }
  }

 private:
  P pattern_;
};

/// The same over several links, which it keeps.
template <class P, PeerTransport T>
class PreparedGroup final : public Prepared {
 public:
  PreparedGroup(std::vector<LinkOver<T>> links, Task& task)
      : links_(std::move(links)), pattern_(std::span(links_), task) {}
  Outcome run() override { return pattern_.run(); }

 private:
  std::vector<LinkOver<T>> links_;
  PreparedPattern<P> pattern_;
};

[[noreturn]] inline void refuse_staged(Pattern pattern) {
  throw Failure(FailureCode::unsupported,
                "stages are measured of pingpong, paced and burst, found " + std::string(name_of(pattern)));
}

[[noreturn]] inline void refuse_staged(std::string_view door) {
  throw Failure(FailureCode::unsupported, "stages are not measured through door " + std::string(door) +
                                              ": leave `door` out, which takes the layer's usual one, or `stages`");
}

/// The listed pattern of that name, over a transport.
template <class T, class... Each>
std::unique_ptr<Prepared> prepare_listed(PatternList<Each...>, Pattern pattern, T& transport, Task& task) {
  std::unique_ptr<Prepared> prepared;
  const auto prepare_if_named = [&]<class P>() {
    if (P::pattern != pattern) return;
    if constexpr (P::template runs_over<T>) {
      prepared = std::make_unique<PreparedPattern<typename P::template Over<T>>>(transport, task);
    }
  };
  (prepare_if_named.template operator()<Each>(), ...);
  if (!prepared) {
    if constexpr (OneSidedTransport<T>) refuse_one_sided(pattern);
    if constexpr (WritingTransport<T>) refuse_written(pattern);
    if constexpr (StagedTransport<T>) refuse_staged(pattern);
    throw Failure(FailureCode::unsupported, std::string(name_of(pattern)) + " does not run over this layer");
  }
  return prepared;
}

/// What a path that notes stages is built with: the patterns whose messages it can tell apart.
using StagedPatterns =
    PatternList<Listed<Pattern::pingpong, Pingpong>, Listed<Pattern::paced, Paced>, Listed<Pattern::burst, Burst>>;

template <class T>
struct PatternsOver {
  using type = Patterns;
};
template <StagedTransport T>
struct PatternsOver<T> {
  using type = StagedPatterns;
};

template <PeerTransport T>
class EndpointOver final : public Endpoint {
 public:
  /// `open()` gives the path.
  template <class Open>
  EndpointOver(Open open, const Site& site) : path_(open()) {
    token = site.token;
    if constexpr (requires { T::first_number; }) sequence = T::first_number;
  }

  std::string address() const override { return path_.address(); }
  void meet(std::string_view peer) override { path_.meet(peer); }
  void check_size(std::size_t message_bytes, std::size_t smallest_of_pattern) const override {
    const std::size_t smallest = std::max(smallest_message_over<T>, smallest_of_pattern);
    const std::size_t largest = std::min(path_.largest_message(), largest_message_bytes);
    if (message_bytes >= smallest && message_bytes <= largest) return;
    if (smallest == largest) {
      throw Failure(FailureCode::unsupported, "an operation here is on a word of " + std::to_string(smallest) +
                                                  " bytes: set message_bytes to that, found " +
                                                  std::to_string(message_bytes));
    }
    throw Failure(FailureCode::unsupported, "messages of " + std::to_string(message_bytes) +
                                                " bytes are not possible here: choose from " +
                                                std::to_string(smallest) + " to " + std::to_string(largest));
  }
  bool has_leftovers() const override {
    if constexpr (LeavingTransport<T> || RemoteMemoryTransport<T>) return path_.has_leftovers();
    return false;
  }
  std::optional<GrantedBuffers> granted_buffers() const override {
    if constexpr (SocketTransport<T>) return path_.granted_buffers();
    return std::nullopt;
  }
  std::optional<RdmaAttachment> rdma_attachment() const override {
    if constexpr (RdmaTransportPath<T>) return path_.attachment();
    return std::nullopt;
  }
  std::unique_ptr<Prepared> prepare_verification(Task& task) override {
    return std::make_unique<PreparedPattern<Verification<T>>>(path_, task);
  }
  std::unique_ptr<Prepared> prepare(Pattern pattern, Task& task) override {
    if constexpr (ByteStream<T>) {
      if (pattern == Pattern::stream && !is_acknowledged(task.probe)) use_up(*this);
    }
    return prepare_listed(typename PatternsOver<T>::type{}, pattern, path_, task);
  }

  std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member> links, Task& task) override {
    if constexpr (StagedTransport<T>) {
      refuse_staged(task.probe.pattern);
    } else if constexpr (WritingTransport<T>) {
      refuse_written(task.probe.pattern);
    } else if constexpr (OneSidedTransport<T>) {
      if (facts_of(task.probe.pattern).family != Family::flood) refuse_one_sided(task.probe.pattern);
      return prepare_over<OneSidedVerification<T>>(links, task);
    } else {
      return prepare_over<LinkVerification<T>>(links, task);
    }
  }
  std::unique_ptr<Prepared> prepare_group(std::span<const Member> links, Task& task) override {
    [[maybe_unused]] const bool is_flood = facts_of(task.probe.pattern).family == Family::flood;
    if constexpr (StagedTransport<T>) {
      refuse_staged(task.probe.pattern);
    } else if constexpr (WritingTransport<T>) {
      refuse_written(task.probe.pattern);
    } else if constexpr (OneSidedTransport<T>) {
      if (!is_flood) refuse_one_sided(task.probe.pattern);
      return prepare_over<OneSidedFlood<T>>(links, task);
    } else {
      if (is_flood) {
        if constexpr (ByteStream<T>) {
          for (const Member& member : links) use_up(static_cast<EndpointOver&>(*member.endpoint));
        }
        return prepare_over<Flood<T>>(links, task);
      }
      return prepare_over<Lockstep<T>>(links, task);
    }
  }

 private:
  template <class P>
  static std::unique_ptr<Prepared> prepare_over(std::span<const Member> links, Task& task) {
    return std::make_unique<PreparedGroup<P, T>>(typed_links(links), task);
  }

  /// A stream or a flood leaves a byte stream so full that it is closed rather than emptied: one that has collapsed
  /// under too many flows would go on for minutes, each lost segment waiting for a timer.
  static void use_up(EndpointOver& end) {
    end.path_.abandon();
    end.is_used_up = true;
  }

  static std::vector<LinkOver<T>> typed_links(std::span<const Member> links) {
    std::vector<LinkOver<T>> typed;
    for (const Member& member : links) {
      // All paths of a cell come from one device and wait alike.
      auto& other = static_cast<EndpointOver&>(*member.endpoint);
      typed.push_back({member.link, &other.path_, other.token, &other.sequence, member.peer_rank});
    }
    return typed;
  }

  T path_;
};

template <LocalTransport T>
class LocalEndpoint final : public Endpoint {
 public:
  explicit LocalEndpoint(T local) : local_(std::move(local)) {}

  std::string address() const override { return {}; }
  void meet(std::string_view) override {}
  void check_size(std::size_t, std::size_t) const override {}  // the device refused what it cannot do
  std::unique_ptr<Prepared> prepare_verification(Task&) override { refuse(); }
  std::unique_ptr<Prepared> prepare(Pattern pattern, Task& task) override {
    return prepare_listed(Patterns{}, pattern, local_, task);
  }
  std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member>, Task&) override { refuse(); }
  std::unique_ptr<Prepared> prepare_group(std::span<const Member>, Task&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Failure(FailureCode::unsupported, "one rank by itself has nobody to exchange messages with");
  }

  T local_;
};

template <class D>
class DeviceOver final : public OpenDevice {
 public:
  explicit DeviceOver(const Attachment& attachment) : device_(attachment) {}

  std::unique_ptr<Endpoint> open(const Site& site, const PlanProbe& probe, Receive receive) override {
    if constexpr (LocalDevice<D>) {
      return std::make_unique<LocalEndpoint<typename D::Path>>(device_.open(probe));
    } else {
      return open_path(site, probe, receive);
    }
  }
  MessageBuffer allocate(std::size_t bytes, MemoryKind kind) override { return device_.allocate(bytes, kind); }
  Traffic traffic() const override { return device_.traffic(); }
  void forget_events() override {
    if constexpr (SelfReportingDevice<D>) device_.forget_events();
  }
  void refuse_failed() override {
    if constexpr (SelfReportingDevice<D>) device_.refuse_failed();
  }

 private:
  /// Look through the ways in which its receivers can wait; the caller names one of them.
  template <std::size_t way = 0>
  std::unique_ptr<Endpoint> open_path(const Site& site, [[maybe_unused]] const PlanProbe& probe, Receive receive) {
    constexpr Receive mode = D::receives[way];
    if constexpr (way + 1 < D::receives.size()) {
      if (receive != mode) return open_path<way + 1>(site, probe, receive);
    }
    if (word_parameter<words::Stages>(probe, "stages") != words::Stages::none) {
      if constexpr (OpensStaged<D, mode>) {
        return open_staged<mode>(site, probe);
      } else {
        refuse_staged(D::door);
      }
    }
    const auto open = [&] {
      if constexpr (TakesParameters<D, mode>) {
        return device_.template open<mode>(site, probe);
      } else {
        return device_.template open<mode>(site);
      }
    };
    return std::make_unique<EndpointOver<typename D::template Path<mode>>>(open, site);
  }

  template <Receive mode>
  std::unique_ptr<Endpoint> open_staged(const Site& site, const PlanProbe& probe) {
    const auto open = [&] { return device_.template open_staged<mode>(site, probe); };
    return std::make_unique<EndpointOver<decltype(open())>>(open, site);
  }

  D device_;
};

template <class D>
  requires Device<D> || LocalDevice<D>
std::unique_ptr<OpenDevice> open_device(const Attachment& attachment) {
  return std::make_unique<DeviceOver<D>>(attachment);
}

}  // namespace fabricbench
