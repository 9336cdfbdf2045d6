internal import Foundation

/// The file that a download was written to.
enum FileContent {
    /// The file's content, or ``AFError/ResponseSerializationFailureReason/inputFileNil`` or
    /// ``AFError/ResponseSerializationFailureReason/inputFileReadFailed(at:)``.
    static func content(of file: URL?) -> Result<Data, any Error> {
        guard let file else { return .failure(AFError.responseSerializationFailed(reason: .inputFileNil)) }
        // Of another URL, Foundation would load the content over the network.
        guard file.isFileURL, let content = try? Data(contentsOf: file) else {
            return .failure(AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file)))
        }
        return .success(content)
    }
}
