import { expect, test } from 'bun:test'
import { loadConfig } from './config.ts'
import { tracesUrlOf } from './traces-url.ts'

const endpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const on = { [endpoint]: 'http://127.0.0.1:4318' }

function load(env: Record<string, string>) {
  const loaded = loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return { ...loaded.config, url: tracesUrlOf(loaded.config), warnings: loaded.warnings }
}

function problems(env: Record<string, string>): readonly string[] {
  const loaded = loadConfig(env)
  return loaded.ok ? [] : loaded.problems
}

test('[OTEL1] traces are off until there is a collector, and can be switched off as elsewhere', () => {
  expect(load({}).url).toBeUndefined()
  expect(load(on).url).toBe('http://127.0.0.1:4318/v1/traces')
  expect(load({ [endpoint]: 'https://otel.example.com/base/' }).url).toBe('https://otel.example.com/base/v1/traces')
  const whole = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/x' }
  expect(load(whole).url).toBe('http://127.0.0.1:9/x')
  expect(load({ ...on, ...whole }).url).toBe('http://127.0.0.1:9/x')
  for (const off of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }]) {
    expect(load({ ...on, ...off }).url).toBeUndefined()
  }
  expect(load({ ...on, OTEL_SDK_DISABLED: 'false' }).url).toBeDefined()
})

test('[OTEL1] headers and attributes are read as OpenTelemetry writes them', () => {
  const config = load({
    ...on,
    OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20YTpi, tenant=calls=1',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,city=Z%C3%BCrich',
    OTEL_SERVICE_NAME: 'calls',
    RINGWIRE_TRACE_RATIO: '.25',
  })
  expect(config).toMatchObject({
    otlpHeaders: { Authorization: 'Basic YTpi', tenant: 'calls=1' },
    otelResource: { 'deployment.environment.name': 'prod', city: 'Zürich' },
    otelServiceName: 'calls',
    traceRatio: 0.25,
  })
})

test('[OTEL1] what cannot be respected is refused or said, and a secret is never repeated', () => {
  const refused = (env: Record<string, string>) => problems({ ...on, ...env }).join('\n')
  for (const protocol of ['grpc', 'http/protobuf']) {
    expect(refused({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol })).toStartWith(
      'OTEL_EXPORTER_OTLP_PROTOCOL must be http/json',
    )
  }
  expect(refused({ OTEL_TRACES_EXPORTER: 'zipkin' })).toBe('OTEL_TRACES_EXPORTER must be otlp or none')
  for (const ratio of ['2', '-1', '1e-1', '10%']) {
    expect(refused({ RINGWIRE_TRACE_RATIO: ratio })).toBe('RINGWIRE_TRACE_RATIO must be a number from 0 to 1, as 0.1')
  }
  for (const headers of ['a=1,SECRET', 'a b=SECRET', 'a=SECRET%0a', 'a=SECRET%']) {
    expect(refused({ OTEL_EXPORTER_OTLP_HEADERS: headers })).toMatch(
      /^OTEL_EXPORTER_OTLP_HEADERS has an entry \d that is not header=value$/,
    )
  }
  const others = { OTEL_BSP_SCHEDULE_DELAY: '1', OTEL_TRACES_SAMPLER: 'always_on' }
  expect(load({ ...on, ...others }).warnings).toEqual([
    'OTEL_BSP_SCHEDULE_DELAY has no effect on Ringwire',
    'OTEL_TRACES_SAMPLER has no effect on Ringwire',
  ])
  // If traces are off, nothing of it concerns the service.
  expect(load({ ...others, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_EXPORTER: 'zipkin' }).warnings).toEqual([])
})
