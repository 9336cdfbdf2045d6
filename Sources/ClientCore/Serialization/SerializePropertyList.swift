public import Foundation
public import FoundationNetworking

extension Request {
    /// Parses a property list in a response with `PropertyListSerialization`.
    ///
    /// Rejects more than 512 levels, binary lists whose shared references expand to more than a million objects, and
    /// binary lists with types that property lists do not support.
    ///
    /// - Parameters:
    ///   - options: Options for reading the property list.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The error if the response is not complete.
    /// - Returns: `error` if there is one; `NSNull` for the statuses 204 and 205; otherwise the objects, or
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
    /// Returns a serializer that parses a property list; see
    /// ``Request/serializeResponsePropertyList(options:response:data:error:)``.
    ///
    /// - Parameter options: Options for reading the property list. Default: immutable objects.
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
    /// Returns the equivalent of ``DataRequest/propertyListResponseSerializer(options:)`` for a file.
    static func propertyList(options: PropertyListSerialization.ReadOptions = []) -> Self {
        Self { Request.serializeResponsePropertyList(options: options, response: $0, data: $1, error: nil) }
    }
}
