internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The outcome of a request, as its handlers receive it.
struct RequestOutcome: Sendable {
    /// The first request that the last attempt sent.
    var request: URLRequest?
    var head: ResponseHead?
    var body = ResponseBody()
    var error: (any Error)?
    var clock = RequestClock()
    var metrics: OnDemand<RequestMetrics?>?

    var response: HTTPURLResponse? { head?.response }
}

/// The body of a response, in memory or in a file.
struct ResponseBody: Sendable {
    /// The body in memory, as far as it was received.
    var data: Data?
    /// The file that the body was written to.
    var temporaryURL: URL?
    /// The file's final location.
    var destinationURL: URL?
    /// Data that resumes the download.
    var resumeData: Data?
}

/// The head of a response, and the URL it came from.
struct ResponseHead: Sendable {
    let head: TransferHead
    let url: URL
    /// The head as an `HTTPURLResponse`. It is created on first access, because creating it costs more than
    /// many small responses do.
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

    /// Whether the status alone implies that there is no content.
    var hasNoContent: Bool { HTTPURLResponse.hasNoContent(status) }

    /// The values of a field, in the order received.
    func values(of name: String) -> [String] { head.fields.values(of: name) }
}

extension TransferHead {
    /// The fields as a dictionary. Values of the same name, in any case, are joined with a comma (RFC 9110
    /// §5.3).
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

/// The times of a request's events. Later times are measured from the first with a monotonic clock, so setting
/// the system clock shifts all of them equally.
struct RequestClock: Sendable {
    private var began: (moment: ContinuousClock.Instant, date: Date)?
    private var firstResponse: ContinuousClock.Instant?
    private var completed: ContinuousClock.Instant?

    /// Records the start. Only the first call counts.
    mutating func start() {
        if began == nil { began = (.now, Date()) }
    }

    /// Forgets the response of an attempt that is being retried.
    mutating func restart() {
        firstResponse = nil
    }

    mutating func responseBegan() {
        firstResponse = firstResponse ?? .now
    }

    mutating func complete() {
        completed = .now
    }

    /// The time since the request was first started.
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

    /// Converts a monotonic time to a date.
    func date(of moment: ContinuousClock.Instant) -> Date? {
        began.map { $0.date + $0.moment.duration(to: moment).inSeconds }
    }
}
