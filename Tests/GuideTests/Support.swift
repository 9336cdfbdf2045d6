import ClientCore
import Foundation
import FoundationNetworking

/// Waits for a handler and returns its value. If the handler is called twice, the continuation is resumed twice, which
/// traps.
///
/// The value is passed through a lock, because the thread sanitizer does not recognize that a continuation synchronizes
/// threads if it is resumed before its task suspends.
func once<Value>(_ start: (@escaping @Sendable (Value) -> Void) -> Void) async -> Value {
    let handed = ResultBox<Value>()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        start {
            handed.put($0)
            continuation.resume()
        }
    }
    return handed.take()
}

/// A value that a handler passes to the waiting test. `@unchecked` is safe, because a lock guards the value.
private final class ResultBox<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value?

    func put(_ value: Value) { lock.withLock { self.value = value } }
    func take() -> Value { lock.withLock { value! } }
}

/// The request that httpbin received.
struct Echo: Decodable {
    let method: String?
    let url: String
    let args: JSONValue?
    let form: JSONValue?
    let json: JSONValue?
    let data: String?
    let headers: [String: String]
}

extension DataRequest {
    /// The request that httpbin received.
    var echo: Echo { get async throws { try await decodable(of: Echo.self) } }
}

/// A JSON value that can be compared, and that a test can write as a literal.
enum JSONValue: Decodable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    init(from decoder: Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let bool = try? container.decode(Bool.self) {
            self = .bool(bool)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let list = try? container.decode([JSONValue].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}

extension JSONValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .number(Double(value)) }
    init(stringLiteral value: String) { self = .text(value) }
    init(arrayLiteral elements: JSONValue...) { self = .list(elements) }
    init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(uniqueKeysWithValues: elements))
    }
}

/// Returns the properties of a JSON object; none if the value is not an object.
func object(_ json: Any?) -> [String: Any] {
    json as? [String: Any] ?? [:]
}

/// A retrier that calls a closure, which decides immediately.
final class Retrying: RequestRetrier {
    private let decide: @Sendable (Request) -> (shouldRetry: Bool, timeDelay: TimeInterval)

    init(_ decide: @escaping @Sendable (Request) -> (shouldRetry: Bool, timeDelay: TimeInterval)) {
        self.decide = decide
    }

    func should(
        _ manager: SessionManager,
        retry request: Request,
        with error: Error,
        completion: @escaping RequestRetryCompletion
    ) {
        let (shouldRetry, timeDelay) = decide(request)
        completion(shouldRetry, timeDelay)
    }
}
