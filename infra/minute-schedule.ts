import { Duration, Stack } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Schedule, ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { LambdaInvoke } from 'aws-cdk-lib/aws-scheduler-targets';
import type { Construct } from 'constructs';
import type { CellFunction } from './cell-function.ts';

/** Invokes a function each minute. A failed invocation is not retried: that of the next minute is the retry. */
export function invokeEachMinute(scope: Construct, fn: CellFunction, description: string): void {
  const stack = Stack.of(scope);
  const role = new Role(scope, 'ScheduleRole', {
    // Only this cell's schedules. The scheduler identifies itself by the group; a condition on one schedule
    // would never match.
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
      conditions: {
        StringEquals: {
          'aws:SourceAccount': stack.account,
          'aws:SourceArn': stack.formatArn({
            service: 'scheduler',
            resource: 'schedule-group',
            resourceName: 'default',
          }),
        },
      },
    }),
  });
  role.addToPolicy(new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [fn.functionArn] }));
  new Schedule(scope, 'EachMinute', {
    description,
    schedule: ScheduleExpression.rate(Duration.minutes(1)),
    target: new LambdaInvoke(fn, {
      // CDK's target would add every version of the function.
      role: role.withoutPolicyUpdates(),
      retryAttempts: 0,
      maxEventAge: Duration.minutes(1),
    }),
  });
}
