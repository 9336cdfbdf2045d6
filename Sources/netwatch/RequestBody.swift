internal import Foundation
internal import NetwatchService

/// Reads the body that `-d` names: text, `@FILE`, or `@-` for standard input.
enum RequestBody {
    static func read(_ argument: String) throws(CommandError) -> Data {
        if argument.hasPrefix("@") {
            return try InputFile.read(String(argument.dropFirst()), limit: ControlMessage.maximumBodyBytes)
        }
        let data = Data(argument.utf8)
        guard data.count <= ControlMessage.maximumBodyBytes else {
            throw CommandError(
                .usage,
                "the body is longer than \(ControlMessage.maximumBodyBytes) bytes, which is the limit"
            )
        }
        return data
    }
}
