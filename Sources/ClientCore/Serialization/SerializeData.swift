public import Foundation
public import FoundationNetworking

extension Request {
    /// What ``DataRequest/responseData(queue:completionHandler:)`` makes of a response, for serializers of
    /// your own.
    ///
    /// - Parameters:
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: Why there is no whole response.
    /// - Returns: `error` if there is one; no bytes for the statuses 204 and 205; else `data`, or
    ///   ``AFError/ResponseSerializationFailureReason/inputDataNil``.
    public static func serializeResponseData(
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<Data, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success(Data()) }
        guard let data else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNil))
        }
        return .success(data)
    }
}

extension DataRequest {
    /// A serializer that makes nothing of the body but itself; see
    /// ``Request/serializeResponseData(response:data:error:)``.
    public static func dataResponseSerializer() -> DataResponseSerializer<Data> {
        .ofContent { response, data, error in
            Request.serializeResponseData(response: response, data: data, error: error)
        }
    }
}

extension DownloadResponseSerializer where Value == Data {
    /// Like ``DataRequest/dataResponseSerializer()``, for a file.
    static func data() -> Self {
        Self { Request.serializeResponseData(response: $0, data: $1, error: nil) }
    }
}
