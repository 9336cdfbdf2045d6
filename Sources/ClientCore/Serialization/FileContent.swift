internal import Foundation

/// Reads the file of a download.
enum FileContent {
    /// Returns the contents of the file, or fails with ``AFError/ResponseSerializationFailureReason/inputFileNil`` or
    /// ``AFError/ResponseSerializationFailureReason/inputFileReadFailed(at:)``.
    static func content(of file: URL?) -> Result<Data, any Error> {
        guard let file else { return .failure(AFError.responseSerializationFailed(reason: .inputFileNil)) }
        // For other URLs, Foundation would load the contents over the network.
        guard file.isFileURL, let content = try? Data(contentsOf: file) else {
            return .failure(AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file)))
        }
        return .success(content)
    }
}
