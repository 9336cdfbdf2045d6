internal import Foundation
internal import Glibc
internal import NetwatchTransport

/// Reads the file of a download.
enum FileContent {
    /// Returns the content of the file. Fails with ``AFError/ResponseSerializationFailureReason/inputFileNil`` if there
    /// is no file, and with ``AFError/ResponseSerializationFailureReason/inputFileReadFailed(at:)`` if it cannot be
    /// read.
    static func content(of file: URL?) -> Result<Data, any Error> {
        guard let file else { return .failure(AFError.responseSerializationFailed(reason: .inputFileNil)) }
        // If this is not a file URL, Foundation would load its content over the network.
        guard file.isFileURL, let content = try? Data(contentsOf: file) else {
            return .failure(AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file)))
        }
        return .success(content)
    }

    /// Returns the error for a file that is too large to be read into memory; `nil` for any other file.
    static func excess(of file: URL?, over maximumBytes: Int) -> (any Error)? {
        var status = stat()
        guard let file, stat(file.path, &status) == 0, status.st_size > maximumBytes else { return nil }
        let message =
            "the downloaded file has \(status.st_size) bytes, which exceeds the memory limit of \(maximumBytes) "
            + "bytes; read the file in parts, or raise RequestOptions.maximumDataBytes"
        // CURLE_FILESIZE_EXCEEDED, as for a body in memory.
        return TransferFailure(code: 63, phase: .response, message: message).urlError(for: nil)
    }
}
