package import Foundation
internal import FoundationNetworking
package import NetwatchTransport

/// The body of a failed request, for an owner that stores it.
package enum OfferedBody: Sendable {
    case data(Data)
    /// A file. If it is temporary, it exists until the request ends.
    case file(URL)
    /// A body that can be read once. Its reads block.
    case reader(any BlockingReader)
    /// A stream that an earlier attempt has read, at least in part.
    case consumed
}

extension FailedRequest {
    /// Returns the body that the request would send next. A stream is taken: no later attempt can send it.
    package func takeBody() -> OfferedBody {
        switch upload {
        case .data(let data): .data(data)
        case .file(let url, _): .file(url)
        case .replayable(let body): .reader(body.makeReader())
        case .stream(let stream): stream.takeUnread().map(OfferedBody.reader) ?? .consumed
        case nil: .data(original.httpBody ?? Data())
        }
    }
}
