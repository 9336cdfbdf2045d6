internal import Foundation
internal import OfflineQueue

/// Reads the body that `-d` names: text, `@FILE`, or `@-` for standard input.
enum RequestBody {
    static func read(_ argument: String) throws(CommandError) -> Data {
        if argument.hasPrefix("@") {
            return try InputFile.read(String(argument.dropFirst()), limit: QueueRequest.maximumBodyBytes)
        }
        let data = Data(argument.utf8)
        guard data.count <= QueueRequest.maximumBodyBytes else {
            throw CommandError(
                .usage,
                "the body is longer than \(QueueRequest.maximumBodyBytes) bytes, which is the limit"
            )
        }
        return data
    }
}
