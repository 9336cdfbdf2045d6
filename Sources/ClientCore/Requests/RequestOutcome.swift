internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// What a request came to, for its handlers.
struct RequestOutcome: Sendable {
    /// The request as it was sent first in the last attempt.
    var request: URLRequest?
    var head: ResponseHead?
    var body = ResponseBody()
    var error: (any Error)?
    var clock = RequestClock()
    var metrics: OnDemand<RequestMetrics?>?

    var response: HTTPURLResponse? { head?.response }
}

/// What became of a response's body.
struct ResponseBody: Sendable {
    /// The body in memory, as far as it came.
    var data: Data?
    /// The file it was written to.
    var temporaryURL: URL?
    /// The file it was moved to.
    var destinationURL: URL?
    /// What continues the download.
    var resumeData: Data?
}

/// The head of a response, and where it came from.
struct ResponseHead: Sendable {
    let head: TransferHead
    let url: URL
    /// The same in Foundation's words: many small responses cost less than that does, so it is made once at most, and
    /// for those only who look at it.
    let foundation: OnDemand<HTTPURLResponse?>

    init(_ head: TransferHead, from url: URL) {
        self.head = head
        self.url = url
        foundation = OnDemand {
            HTTPURLResponse(
                url: url,
                statusCode: head.status,
                httpVersion: head.version,
                headerFields: head.joinedFields
            )
        }
    }

    var response: HTTPURLResponse? { foundation.value }

    var status: Int { head.status }

    /// Whether the status alone says that there is no content.
    var hasNoContent: Bool { HTTPURLResponse.hasNoContent(status) }

    /// The values of a field, in the order they came.
    func values(of name: String) -> [String] { head.fields.values(of: name) }
}

extension TransferHead {
    /// Fields of the same name, however written, are one, joined as RFC 9110 §5.3 says.
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

/// When what happened to a request. Later moments are counted from the first, so that setting the system's
/// clock moves all of them alike.
struct RequestClock: Sendable {
    private var began: (moment: ContinuousClock.Instant, date: Date)?
    private var firstResponse: ContinuousClock.Instant?
    private var completed: ContinuousClock.Instant?

    /// Only the first start counts.
    mutating func start() {
        if began == nil { began = (.now, Date()) }
    }

    /// Forgets a response that another attempt replaces.
    mutating func restart() {
        firstResponse = nil
    }

    mutating func responseBegan() {
        firstResponse = firstResponse ?? .now
    }

    mutating func complete() {
        completed = .now
    }

    /// How long ago the request was started, the first time.
    var elapsed: Duration { began.map { $0.moment.duration(to: .now) } ?? .zero }

    /// A timeline whose serialization ends now.
    var timeline: Timeline {
        guard let began else { return Timeline() }
        return Timeline(
            start: began.date,
            firstByte: firstResponse.map { began.moment.duration(to: $0) },
            completed: began.moment.duration(to: completed ?? .now),
            serialized: began.moment.duration(to: .now)
        )
    }

    /// The date of a moment.
    func date(of moment: ContinuousClock.Instant) -> Date? {
        began.map { $0.date + $0.moment.duration(to: moment).inSeconds }
    }
}
