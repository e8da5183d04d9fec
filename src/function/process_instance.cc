#include "function/process_instance.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace orla::function {

CancelSignal::CancelSignal(Cancellation& cancellation)
    : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), subscription_(cancellation, [fd = event_.get()] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
      }) {}

CallResult cancelled_result(CancelReason reason) {
  CallResult result;
  switch (reason) {
    case CancelReason::kTimeout:
      result.end = CallEnd::kTimedOut;
      result.message = "the call was ended at its deadline";
      break;
    case CancelReason::kDraining:
      result.end = CallEnd::kCancelled;
      result.message = "the call was ended because the node goes down";
      break;
    case CancelReason::kNone:
    case CancelReason::kClientGone:
    case CancelReason::kCancelled:
      result.end = CallEnd::kCancelled;
      result.message = reason == CancelReason::kCancelled ? "the call was cancelled" : "the client has gone";
      break;
  }
  return result;
}

}  // namespace orla::function
