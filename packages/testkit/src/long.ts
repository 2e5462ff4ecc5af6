export const longVariable = 'RINGWIRE_TEST_LONG'

/** `npm run test:all`: what has a short and a long form takes the long one. */
export const isLong = process.env[longVariable] === '1'
