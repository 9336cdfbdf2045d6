internal import Foundation

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
}
