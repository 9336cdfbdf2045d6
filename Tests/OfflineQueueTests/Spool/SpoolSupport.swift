internal import Foundation
internal import NetwatchTransport
internal import OfflineQueue

extension OpenedBody {
    /// Returns the whole content of the body.
    func content() throws -> Data {
        let reader = makeReader()
        var content = Data()
        var chunk = Data(count: 1 << 16)
        while true {
            let count = try chunk.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { return content }
            content.append(chunk.prefix(count))
        }
    }
}
