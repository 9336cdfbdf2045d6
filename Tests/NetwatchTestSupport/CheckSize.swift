internal import Glibc

/// The extent of each randomised check: `NETWATCH_CHECKS` in the environment.
///
/// `small`, the default, fits the time of `make test`; `medium` is for `make random`, which CI runs; `full` is for
/// `make soak`.
package enum CheckSize: String {
    case small
    case medium
    case full

    package static let current: CheckSize = {
        guard let text = getenv("NETWATCH_CHECKS").map({ String(cString: $0) }) else { return .small }
        guard let size = CheckSize(rawValue: text) else {
            preconditionFailure("NETWATCH_CHECKS is small, medium or full, not `\(text)`")
        }
        return size
    }()

    package static func choose<Value>(small: Value, medium: Value, full: Value) -> Value {
        switch current {
        case .small: small
        case .medium: medium
        case .full: full
        }
    }
}
