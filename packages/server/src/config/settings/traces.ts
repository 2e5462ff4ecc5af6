import { keyValues, ratio } from '../otel-values.ts'
import { setting, unset } from '../setting.ts'
import { baseUrl, flag, text } from '../values.ts'

/** Where traces of calls go [OTEL1]. The names are those of OpenTelemetry. */
export const traces = {
  otlpEndpoint: unset(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    baseUrl(),
    null,
    'unset: no traces',
    'A collector that takes OTLP over HTTP, as http://127.0.0.1:4318: traces of calls go to /v1/traces below it, as JSON.',
  ),
  otlpTracesEndpoint: unset(
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    baseUrl(),
    null,
    'unset: from OTEL_EXPORTER_OTLP_ENDPOINT',
    'The same as a whole URL, to which nothing is added.',
  ),
  otlpHeaders: unset(
    'OTEL_EXPORTER_OTLP_HEADERS',
    keyValues('header'),
    {} as Readonly<Record<string, string>>,
    'unset: none',
    'Headers for the collector, as api-key=SECRET,tenant=calls; values are percent-encoded.',
    { secret: true },
  ),
  otlpProtocol: setting(
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    text(),
    'http/json',
    'With traces only http/json is allowed: collectors take it at the port of http/protobuf.',
  ),
  tracesExporter: setting(
    'OTEL_TRACES_EXPORTER',
    text(),
    'otlp',
    'none switches traces off; with traces nothing else than otlp is allowed.',
  ),
  otelDisabled: setting('OTEL_SDK_DISABLED', flag(), 'false', 'true switches traces off.'),
  otelServiceName: setting('OTEL_SERVICE_NAME', text(), 'ringwire', 'The name of this service in traces.'),
  otelResource: unset(
    'OTEL_RESOURCE_ATTRIBUTES',
    keyValues('attribute'),
    {} as Readonly<Record<string, string>>,
    'unset: none',
    'More attributes of this process in traces, as deployment.environment.name=prod; values are percent-encoded.',
  ),
  traceRatio: setting(
    'RINGWIRE_TRACE_RATIO',
    ratio(),
    '1',
    'The share of the calls that are traced, from 0 to 1. All nodes choose the same calls.',
  ),
}
