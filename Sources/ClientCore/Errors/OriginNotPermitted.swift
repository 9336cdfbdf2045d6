package import NetwatchTransport

/// The error of a request that must not be sent to an origin. Nothing was sent there.
package struct OriginNotPermitted: Error {
    package let origin: TransferOrigin
}
