internal import Glibc

/// The number of cases that randomised tests check. The environment variable `NETWATCH_CHECKS` selects it.
///
/// | value | used by |
/// |---|---|
/// | `small` (default) | `make test` and `make suites`, so that they stay fast |
/// | `medium` | `make random`, which `make nightly` runs |
/// | `full` | `make soak` |
package enum CheckSize: String {
    case small
    case medium
    case full

    package static let current: CheckSize = {
        guard let text = getenv("NETWATCH_CHECKS").map({ String(cString: $0) }) else { return .small }
        guard let size = CheckSize(rawValue: text) else {
            preconditionFailure("NETWATCH_CHECKS must be `small`, `medium` or `full`, not `\(text)`")
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
