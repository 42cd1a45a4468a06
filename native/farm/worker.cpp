#include "farm/worker.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/failure.hpp"
#include "core/set_aside.hpp"
#include "farm/output.hpp"

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;

/// How often a worker that has nothing else to say says that it lives.
constexpr std::uint64_t sign_of_life_ns = 2'000'000'000;

/// Of what a failed job wrote last, shown with it.
constexpr std::size_t tail_bytes = 300;

std::string last_words(const std::string& folder) {
  for (const std::string_view name : {"stderr", "stdout"}) {
    std::ifstream file(folder + "/" + std::string(name), std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
    if (size <= 0) continue;
    file.seekg(std::max<std::streamoff>(0, size - static_cast<std::streamoff>(tail_bytes)));
    std::string text(std::istreambuf_iterator<char>(file), {});
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    std::ranges::replace(text, '\n', ' ');
    if (!text.empty()) return "; " + std::string(name) + " ends: " + text;
  }
  return {};
}

/// Where a job starts and its input lies, beside nothing of the farm's own, whatever it is called.
std::string work_folder(const std::string& folder) { return folder + "/work"; }
std::string input_path(const std::string& folder, const std::string& name) { return work_folder(folder) + "/" + name; }

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

Worker::Worker(const Control& control, MPI_Comm pieces, const FarmPlan& plan, Runner& runner, std::string root)
    : channel_(control),
      pieces_(pieces),
      plan_(plan),
      runner_(runner),
      root_(std::move(root)),
      has_output_file_(names_output(plan.command)),
      said_ns_(Clock::now()) {}

void Worker::run() {
  try {
    work();
  } catch (...) {
    for (Receiving& each : receiving_) set_aside(each.request, std::move(each.buffer));
    throw;
  }
  std::string problem;
  try {
    problem = runner_.close([this] { sign_of_life(); });
  } catch (const Failure&) {  // who runs the jobs is gone, and its jobs with it: the folder is left to us
    std::error_code error;
    fs::remove_all(root_, error);
    if (error) problem = root_ + " cannot be removed: " + error.message();
  }
  channel_.send(0, FarmClosed{problem});
}

void Worker::work() {
  Waiting waiting;
  while (!is_over_) {
    const bool has_piece = take_piece();
    const bool has_order = take_order();
    const bool has_end = take_end();
    sign_of_life();
    if (has_piece || has_order || has_end) {
      waiting.begin_again();
    } else {
      waiting.sleep(broken_ ? -1 : runner_.descriptor());
    }
  }
}

bool Worker::take_order() {
  const auto order = channel_.try_receive<FarmJob, FarmOver>(0);
  if (!order) return false;
  if (const auto* job = std::get_if<FarmJob>(&*order)) {
    begin(*job);
  } else {
    is_over_ = true;
  }
  return true;
}

void Worker::begin(const FarmJob& job) {
  next_id_ = job.id + 1;
  if (broken_) return refuse(job.id, ended::node, *broken_);
  Staging staging{.job = job,
                  .folder = root_ + "/" + std::to_string(job.job) + "." + std::to_string(job.attempt),
                  .file = {},
                  .digest = {}};
  if (mkdir(staging.folder.c_str(), 0700) != 0 || mkdir(work_folder(staging.folder).c_str(), 0700) != 0)
    return refuse(job.id, ended::node, staging.folder + ": " + std::strerror(errno));
  staging_.emplace(job.id, std::move(staging));
}

bool Worker::open(Staging& staging) {
  const std::string path = input_path(staging.folder, staging.job.name);
  // A job may be a program that is sent.
  staging.file = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
  if (staging.file.get() >= 0) return true;
  const std::string why = path + ": " + std::strerror(errno);
  const std::uint64_t id = staging.job.id;
  remove_folder(staging.folder);
  staging_.erase(id);
  refuse(id, ended::node, why);
  return false;
}

bool Worker::take_piece() {
  const bool has_begun = receive_pieces();
  if (receiving_.empty()) return has_begun;
  Receiving& first = receiving_.front();
  int is_done = 0;
  MPI_Test(&first.request, &is_done, MPI_STATUS_IGNORE);
  if (is_done == 0) return has_begun;
  Piece piece;
  std::memcpy(&piece, first.buffer->data(), sizeof piece);
  // Of two communicators the one may be faster: a piece waits for the order that it belongs to.
  if (piece.id >= next_id_) return has_begun;
  std::shared_ptr<std::vector<std::byte>> buffer = std::move(first.buffer);
  const std::size_t bytes = first.bytes;
  receiving_.pop_front();
  take(piece, std::span(*buffer).subspan(sizeof piece, bytes - sizeof piece));
  spare_.push_back(std::move(buffer));
  return true;
}

bool Worker::receive_pieces() {
  bool has_begun = false;
  while (receiving_.size() < pieces_of_worker) {
    int has_come = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(0, piece_tag, pieces_, &has_come, &handle, &status);
    if (has_come == 0) break;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes < sizeof(Piece) || bytes > sizeof(Piece) + piece_bytes) {
      throw ControlError("a piece of an input has " + std::to_string(bytes) + " bytes, needed " +
                         std::to_string(sizeof(Piece)) + " to " + std::to_string(sizeof(Piece) + piece_bytes));
    }
    Receiving& one = receiving_.emplace_back();
    one.bytes = bytes;
    one.buffer = spare_.empty() ? std::make_shared<std::vector<std::byte>>(sizeof(Piece) + piece_bytes)
                                : std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
    MPI_Imrecv(one.buffer->data(), size, MPI_BYTE, &handle, &one.request);
    has_begun = true;
  }
  return has_begun;
}

void Worker::take(const Piece& piece, std::span<const std::byte> bytes) {
  auto found = staging_.find(piece.id);
  if (found == staging_.end()) return;  // of an input that this worker has refused
  write(found->second, bytes);
  found = staging_.find(piece.id);
  if (found == staging_.end() || piece.is_last == 0) return;
  Staging staging = std::move(found->second);
  staging_.erase(found);
  finish(staging, piece);
}

void Worker::write(Staging& staging, std::span<const std::byte> bytes) {
  if (staging.file.get() < 0 && !open(staging)) return;
  staging.digest.add(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(staging.file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      const Staging refused = std::move(staging);
      staging_.erase(refused.job.id);
      return refuse_unwritten(refused, error);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// An input that is not whole on this node's disk.
void Worker::refuse_unwritten(const Staging& staging, int error) {
  remove_folder(staging.folder);
  refuse(staging.job.id, ended::node, staging.folder + "/" + staging.job.name + ": " + std::strerror(error));
}

void Worker::finish(Staging& staging, const Piece& piece) {
  if (const int error = staging.file.close_now(); error != 0) return refuse_unwritten(staging, error);
  const std::uint64_t digest = staging.digest.value();
  if (piece.is_broken != 0 || digest != piece.digest) {
    remove_folder(staging.folder);
    const std::string why =
        "the input arrived as " + digest_text(digest) + ", rank 0 sent " + digest_text(piece.digest);
    return refuse(staging.job.id, ended::input, piece.is_broken != 0 ? "rank 0 could not read it" : why);
  }
  ready_.push_back({.job = std::move(staging.job), .folder = std::move(staging.folder), .digest = digest});
  start_next();
}

void Worker::start_next() {
  while (!ready_.empty() && running_.size() < static_cast<std::size_t>(plan_.at_once)) {
    Ready next = std::move(ready_.front());
    ready_.pop_front();
    const std::string input = input_path(next.folder, next.job.name);
    const Placeholders values{.job = next.job.job,
                              .attempt = next.job.attempt,
                              .input = input,
                              .output = next.folder + "/output",
                              .digest = digest_text(next.digest)};
    JobToRun job{.id = next.job.id,
                 .folder = next.folder,
                 .command = filled(plan_.command, values),
                 .input = input,
                 .digest = next.digest,
                 .seconds = plan_.job_seconds};
    const std::uint64_t id = job.id;
    running_.emplace(id, std::move(next));
    try {
      runner_.run(job);
    } catch (const Failure& failure) {
      if (failure.code() != FailureCode::unsupported) return give_back_all(failure.what());
      remove_folder(job.folder);
      running_.erase(id);
      refuse(id, ended::not_started, failure.what());
    }
  }
}

bool Worker::take_end() {
  if (broken_) return false;
  std::optional<JobEnd> end;
  try {
    end = runner_.take();
  } catch (const Failure& failure) {
    give_back_all(failure.what());
    return true;
  }
  if (!end) return false;
  const auto found = running_.find(end->id);
  if (found == running_.end()) return true;
  const Ready ready = std::move(found->second);
  running_.erase(found);
  start_next();  // before anything else: the slot is free
  tell_of(ready, *end);
  remove_folder(ready.folder);
  return true;
}

void Worker::tell_of(const Ready& ready, const JobEnd& end) {
  FarmResult result{.id = ready.job.id,
                    .ended = std::string(ended::done),
                    .exit_code = nullptr,
                    .signal = nullptr,
                    .reason = {},
                    .run_seconds = end.seconds,
                    .output_bytes = 0,
                    .output_digest = {},
                    .output = {}};
  if (end.exit_code) result.exit_code = *end.exit_code;
  if (end.signal) result.signal = *end.signal;
  if (!end.problem.empty()) {
    result.ended = end.is_of_node ? ended::node : ended::not_started;
    result.reason = end.problem;
  } else if (end.is_late) {
    result.ended = ended::limit;
    result.reason = "it had not ended after " + seconds_text(plan_.job_seconds) + " and was killed";
  } else if (end.signal) {
    result.ended = ended::signal;
    result.reason = "it was killed by signal " + std::to_string(*end.signal) + " (" + strsignal(*end.signal) + ")";
  } else if (end.exit_code.value_or(0) != 0) {
    result.ended = ended::exit_code;
    result.reason = "it ended with exit code " + std::to_string(*end.exit_code);
  }
  if (result.ended == ended::done) {
    add_output(result, ready);
  } else if (end.problem.empty()) {
    result.reason += last_words(ready.folder);
  }
  say(result);
}

void Worker::add_output(FarmResult& result, const Ready& ready) {
  try {
    const OutputFile output(ready.folder + (has_output_file_ ? "/output" : "/stdout"));
    result.output_bytes = output.bytes();
    if (plan_.output_bytes > 0 && output.bytes() > plan_.output_bytes) {
      throw Failure(FailureCode::error, "its output has " + std::to_string(output.bytes()) + " bytes, at most " +
                                            std::to_string(plan_.output_bytes) + " are brought back: raise `output`");
    }
    std::string* const kept = plan_.output_bytes > 0 ? &result.output : nullptr;
    result.output_digest = digest_text(output.read(kept, [this] { sign_of_life(); }));
  } catch (const Failure& failure) {
    result.ended = ended::output;
    result.reason = failure.what();
    result.output.clear();
  }
}

void Worker::give_back_all(const std::string& why) {
  broken_ = why;
  for (const auto& [id, ready] : running_) refuse(id, ended::node, why);
  for (const Ready& ready : ready_) refuse(ready.job.id, ended::node, why);
  for (const auto& [id, staging] : staging_) refuse(id, ended::node, why);
  running_.clear();
  ready_.clear();
  staging_.clear();
}

void Worker::refuse(std::uint64_t id, std::string_view how, const std::string& why) {
  say({.id = id,
       .ended = std::string(how),
       .exit_code = nullptr,
       .signal = nullptr,
       .reason = why,
       .run_seconds = 0,
       .output_bytes = 0,
       .output_digest = {},
       .output = {}});
}

void Worker::say(const FarmResult& result) {
  channel_.send(0, result);
  said_ns_ = Clock::now();
}

void Worker::sign_of_life() {
  if (Clock::now() - said_ns_ < sign_of_life_ns) return;
  channel_.send(0, FarmAlive{});
  said_ns_ = Clock::now();
}

void Worker::remove_folder(const std::string& folder) {
  std::error_code ignored;  // what stays goes with the farm's own folder, which tells
  for (fs::directory_iterator each(folder, ignored), end; !ignored && each != end; each.increment(ignored)) {
    sign_of_life();
    std::error_code unknown;
    if (fs::is_directory(each->symlink_status(unknown))) {
      remove_folder(each->path().string());
    } else {
      fs::remove(each->path(), unknown);
    }
  }
  fs::remove_all(folder, ignored);
}

}  // namespace fabricbench::farm
