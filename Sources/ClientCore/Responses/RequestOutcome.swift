internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The results of a request, from which the responses for its handlers are created.
struct RequestOutcome: Sendable {
    /// The adapted request of the last attempt, before any redirect.
    var request: URLRequest?
    var head: ResponseHead?
    var body = ResponseBody()
    var error: (any Error)?
    var clock = RequestClock()
    var metrics: LazyMetrics?

    var response: HTTPURLResponse? { head?.response }
}

/// The body of a response, in memory or in a file.
struct ResponseBody: Sendable {
    /// The body in memory, as far as it was received.
    var data: Data?
    /// The file that the body was written to.
    var temporaryURL: URL?
    /// The file's final location, even if moving it there failed.
    var destinationURL: URL?
    /// The resume data, with which the download can be continued later.
    var resumeData: Data?

    /// The file at its current location.
    var file: URL? { destinationURL ?? temporaryURL }

    /// Returns the body as serializers receive it: the data, or the file.
    func content<Content>(as type: Content.Type) -> Content? { data as? Content ?? file as? Content }
}

/// The head of a response as Foundation describes it.
typealias LazyResponse = LazyValue<(url: URL, head: TransferHead), HTTPURLResponse?>

/// The head of a response, and the URL of the hop that received it.
struct ResponseHead: Sendable {
    let head: TransferHead
    let url: URL
    /// The head as an `HTTPURLResponse`. It is created on first access, because creating it takes longer than receiving
    /// many small responses.
    let lazyResponse: LazyResponse

    init(_ head: TransferHead, from url: URL) {
        self.head = head
        self.url = url
        lazyResponse = LazyResponse((url, head)) { source in
            HTTPURLResponse(
                url: source.url,
                statusCode: source.head.status,
                httpVersion: source.head.version,
                headerFields: source.head.joinedFields
            )
        }
    }

    var response: HTTPURLResponse? { lazyResponse.value }

    var status: Int { head.status }

    /// Whether the status says that the response has no content: 204 or 205.
    var hasNoContent: Bool { HTTPURLResponse.hasNoContent(status) }

    /// The values of a field, in the order received.
    func values(of name: String) -> [String] { head.fields.values(of: name) }
}

extension TransferHead {
    /// The fields as a dictionary. The values of fields with the same name are joined with a comma (RFC 9110 §5.3). The
    /// case of names is ignored.
    fileprivate var joinedFields: [String: String] {
        var fields: [String: String] = [:]
        var names: [String: String] = [:]
        for header in headers {
            let name = names[header.name.lowercased(), default: header.name]
            names[header.name.lowercased()] = name
            fields[name] = fields[name].map { "\($0), \(header.value)" } ?? header.value
        }
        return fields
    }
}

/// A value that is created from a source on first access. All copies of a response share one `LazyValue`.
///
/// The source is separate from the closure, so that a closure without captures needs no memory.
final class LazyValue<Source: Sendable, Value: Sendable>: Sendable {
    private enum State: Sendable {
        case pending(Source, @Sendable (Source) -> Value)
        case created(Value)
    }

    private let state: Lock<State>

    /// - Parameters:
    ///   - source: What the value is created from. Released when the value has been created.
    ///   - create: Creates the value. Called at most once, under a lock.
    init(_ source: Source, create: @escaping @Sendable (Source) -> Value) {
        state = Lock(.pending(source, create))
    }

    /// Wraps an existing value.
    init(value: Value) {
        state = Lock(.created(value))
    }

    var value: Value {
        state.withLock { state in
            switch state {
            case .created(let value): return value
            case .pending(let source, let create):
                let value = create(source)
                state = .created(value)
                return value
            }
        }
    }
}
