public import Foundation
public import FoundationNetworking

extension Request {
    /// Parses the property list in a response with `PropertyListSerialization`. Custom serializers can call this
    /// function.
    ///
    /// These lists are rejected, so that a server cannot exhaust the memory or crash the process:
    ///
    /// - lists with more than 512 levels
    /// - binary lists whose shared references expand to more than a million objects
    /// - binary lists with types that property lists do not support
    ///
    /// - Parameters:
    ///   - options: Options for reading the property list.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The request's error; `nil` for a success.
    /// - Returns: The first of these that applies:
    ///   - `error`, if it is not `nil`
    ///   - `NSNull`, if the status is 204 or 205
    ///   - ``AFError/ResponseSerializationFailureReason/inputDataNilOrZeroLength``, if the body is empty
    ///   - ``AFError/ResponseSerializationFailureReason/propertyListSerializationFailed(error:)``, if the list is
    ///     malformed or rejected
    ///   - the parsed value
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

extension BodyRequest {
    /// Returns a serializer that parses a property list; see
    /// ``Request/serializeResponsePropertyList(options:response:data:error:)``.
    ///
    /// - Parameter options: Options for reading the property list. Default: immutable objects.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> BodySerializer<Any, Content> {
        .ofBytes { response, data, error in
            Request.serializeResponsePropertyList(
                options: options,
                response: response,
                data: data,
                error: error
            )
        }
    }
}
