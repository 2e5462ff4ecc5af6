/** The variable that names the built service; where it is not set, tests run it from its sources. */
export const programVariable = 'RINGWIRE_TEST_PROGRAM'

const built = process.env[programVariable]

/** What runs the service and its commands. A whole run builds it first: so it starts in a third of the time. */
export const program: readonly string[] =
  built === undefined ? [process.execPath, new URL('../../server/src/main.ts', import.meta.url).pathname] : [built]
