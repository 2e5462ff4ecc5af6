import { outageEnv, registerDatabaseOutage } from './postgres-outage.ts'
import { worldFor } from './world.ts'

registerDatabaseOutage('is killed and started again', worldFor({ env: outageEnv }), {
  begin: ({ postgres }) => postgres.kill(),
  end: ({ postgres }) => postgres.up(),
})
