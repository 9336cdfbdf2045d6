public import Foundation
public import FoundationNetworking

extension Request {
    /// Makes objects of a property list in a response, by `PropertyListSerialization`. It refuses more than
    /// 512 levels, and a binary list whose
    /// shared parts make more than a million objects, or that has what no property list has.
    ///
    /// - Parameters:
    ///   - options: How the objects are made.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: Why there is no whole response.
    /// - Returns: `error` if there is one; `NSNull` for the statuses 204 and 205; else the objects, or
    ///   ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength`` or
    ///   ``AFError/ResponseSerializationFailureReason/propertyListSerializationFailed(error:)``.
    public static func serializeResponsePropertyList(
        options: PropertyListSerialization.ReadOptions,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?
    ) -> Result<Any, any Error> {
        if let error { return .failure(error) }
        if response?.hasNoContent == true { return .success(NSNull()) }
        guard let data, !data.isEmpty else {
            return .failure(AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength))
        }
        return Result { try propertyList(data, options) }
            .mapError {
                AFError.responseSerializationFailed(reason: .propertyListSerializationFailed(error: $0))
            }
    }

    private static func propertyList(
        _ data: Data,
        _ options: PropertyListSerialization.ReadOptions
    ) throws -> Any {
        try BinaryPropertyListCheck.check(data)
        return try PropertyListSerialization.propertyList(from: data, options: options, format: nil)
    }
}

extension DataRequest {
    /// A serializer that makes objects of a property list; see
    /// ``Request/serializeResponsePropertyList(options:response:data:error:)``.
    ///
    /// - Parameter options: How the objects are made. Default: immutable.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> DataResponseSerializer<Any> {
        .ofContent { response, data, error in
            Request.serializeResponsePropertyList(
                options: options,
                response: response,
                data: data,
                error: error
            )
        }
    }
}

extension DownloadResponseSerializer where Value == Any {
    /// Like ``DataRequest/propertyListResponseSerializer(options:)``, for a file.
    static func propertyList(options: PropertyListSerialization.ReadOptions = []) -> Self {
        Self { Request.serializeResponsePropertyList(options: options, response: $0, data: $1, error: nil) }
    }
}
